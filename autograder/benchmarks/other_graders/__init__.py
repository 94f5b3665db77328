"""Runs gradescope-utils and otter-grader on hostile submissions, for comparison."""
