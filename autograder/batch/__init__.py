"""Grades a whole class: a Gradescope export in; results, tables and a report out."""
