"""Submits a sitecustomize.py, which Python runs when it starts in that folder.

As: convolution.py
Earns: 1.7
"""

FILE = "sitecustomize.py"
