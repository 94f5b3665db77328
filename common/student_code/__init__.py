"""Loads a submission's code, restricts it, and copies values to and from it."""
