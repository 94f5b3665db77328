"""Benchmarks: what must be fast, each as a ratio to a yardstick measured in the same run."""
