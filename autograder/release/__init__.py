"""What `make` and `make semester` do: zips that are up to date, and shown to work."""
