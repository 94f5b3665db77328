"""Hints: recorded from what mistakes returned in a proof, and shipped with the tests."""
