"""How a submission is found, loaded and called."""
