"""Grades the submissions of a batch: on this machine, or on a Ray cluster."""
