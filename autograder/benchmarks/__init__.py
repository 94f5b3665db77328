"""Benchmarks: what must be fast, each as a ratio to a baseline measured in the same run."""
