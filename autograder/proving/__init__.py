"""Proves that the graders give full points to correct code and only to correct code."""
