"""Makes synthetic classes with known scores, to test the grading of a whole class."""
