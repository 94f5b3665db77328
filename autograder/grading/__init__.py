"""Grading: one submission in, one results.json out, with student code isolated."""
