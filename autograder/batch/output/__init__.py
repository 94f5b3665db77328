"""Writes what people read of a batch: report, grade tables, written answers, comparison."""
