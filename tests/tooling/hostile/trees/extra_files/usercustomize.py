"""Submits a usercustomize.py where a user's own packages lie.

As: attention.py
Earns: 5.4
"""

FILE = ".local/lib/python3.11/site-packages/usercustomize.py"
