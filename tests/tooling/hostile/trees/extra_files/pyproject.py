"""Submits a pyproject.toml that makes pytest collect nothing, and names plugins.

As: convolution.py
Earns: 1.7
"""

FILE = "pyproject.toml"
TEXT = """
[tool.pytest.ini_options]
addopts = ["--collect-only", "-p", "conftest"]
python_functions = ["nothing_*"]

[build-system]
requires = ["hostile"]
"""
