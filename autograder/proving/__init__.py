"""Proving: shows that the graders reward right code and only right code."""
