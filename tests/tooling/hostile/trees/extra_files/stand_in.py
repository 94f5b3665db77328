"""Submits other modules of the same package, and an __init__.py, beside the file that counts.

As: convolution.py
Earns: 1.7
"""

FILE = "__init__.py"
