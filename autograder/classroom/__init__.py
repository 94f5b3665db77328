"""Makes synthetic classes with known scores, and injects faults into batches of them."""
