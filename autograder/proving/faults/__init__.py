"""Fault injection (`make chaos`), and what must hold for results afterwards."""
