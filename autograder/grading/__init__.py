"""Grades one submission into one results.json, with student code isolated in a sandbox."""
