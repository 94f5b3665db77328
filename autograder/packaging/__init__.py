"""Builds the handout for students and the autograder zip for Gradescope."""
