"""Timing: how fast a submission is, beside a yardstick, on a CPU or a GPU."""
