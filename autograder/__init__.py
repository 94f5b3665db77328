"""The machinery of the course: authoring, packaging, grading, proving, batch."""
