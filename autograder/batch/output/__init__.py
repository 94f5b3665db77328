"""Shows how a class did: the report, the tables, the written answers, two batches compared."""
