"""The course's machinery: authoring, packaging, grading, proving, batch grading."""
