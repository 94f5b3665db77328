"""Grades a whole class: many submissions in, results, tables and a report out."""
