"""Explains in words why a test failed, and recognizes known mistakes (hints)."""
