"""Hostile submissions: what each of them tries, and what is to be seen after it was graded."""
