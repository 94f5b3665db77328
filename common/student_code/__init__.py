"""Finds, loads, restricts and calls a submission's code."""
