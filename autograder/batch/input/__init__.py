"""Reads what a TA has downloaded: the submissions of a class, and who made each."""
