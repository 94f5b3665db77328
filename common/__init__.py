"""What students and graders both import."""
