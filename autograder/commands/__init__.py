"""The click commands: thin, over functions that can be called without them."""
