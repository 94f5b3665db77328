"""Generates stubs, exercise tables, stored answers, notebooks and weights from solutions."""
