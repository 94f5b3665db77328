"""The kernel's defenses that confine student code: one module for each."""
