"""Writes a batch's outputs for people: report, grade tables, written answers, comparison."""
