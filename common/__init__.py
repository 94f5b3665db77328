"""Code that both students and graders import."""
