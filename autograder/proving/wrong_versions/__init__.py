"""Wrong versions of the reference that graders must notice: mistakes and mutants."""
