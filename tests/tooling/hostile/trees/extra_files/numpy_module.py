"""Submits a numpy.py, which is found before NumPy in the folder of the submission.

As: convolution.py
Earns: 1.7
"""

FILE = "numpy.py"
TEXT = """
class testing:
    assert_allclose = staticmethod(lambda *args, **kwargs: None)
"""
