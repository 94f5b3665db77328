"""Grades the corpus of hostile submissions, and detects what they gained or left behind."""
