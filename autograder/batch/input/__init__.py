"""Reads a Gradescope export: the submissions of a class, and who made each."""
