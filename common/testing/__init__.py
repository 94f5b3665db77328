"""What graded tests import: fixtures, comparisons, checks, timing, feedback."""
