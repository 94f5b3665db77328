"""Authoring: from the one source of an assignment to all that is generated from it."""
