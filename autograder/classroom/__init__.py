"""Makes a synthetic class whose true scores are known, to check the grading of a whole class."""
