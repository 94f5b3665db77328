"""Timing: how fast a submission is, beside a baseline, on a CPU or a GPU."""
