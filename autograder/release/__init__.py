"""What `make` and `make semester` do: build up-to-date zips, and check that they work."""
