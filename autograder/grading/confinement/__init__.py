"""What keeps student code in its place: one module per defence of the kernel."""
