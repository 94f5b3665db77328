"""The commands of the command line: thin, over functions that can be called without it."""
