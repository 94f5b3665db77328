"""Faults at random moments of a grading, and what must hold after each."""
