"""Records the hint files: what each known mistake returned in each test."""
