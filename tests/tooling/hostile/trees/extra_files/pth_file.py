"""Submits a .pth file, whose lines Python runs when it starts.

As: convolution.py
Earns: 1.7
"""

FILE = "hostile.pth"
TEXT = """
import os; open('/tmp/hostile-pth-' + str(os.getuid()), 'w').close()
"""
