"""Other graders, with the same exercise, for comparison: what hostile submissions get from them."""
