"""Benchmarks of `make bench`, each as a ratio to a baseline measured in the same run."""
