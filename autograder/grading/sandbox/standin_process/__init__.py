"""Stand-ins in another process, so that student code has neither them nor PyTorch in memory."""
