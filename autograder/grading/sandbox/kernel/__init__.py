"""The Linux kernel features that confine student code, one module for each."""
