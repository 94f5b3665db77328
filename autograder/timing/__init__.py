"""Measures how fast a submission is, against a baseline, on a CPU or a GPU."""
