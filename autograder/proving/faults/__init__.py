"""One fault injector, for gradings and for batches, and what must hold of a result afterwards."""
