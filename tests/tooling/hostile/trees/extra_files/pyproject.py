"""Hands in a pyproject.toml that makes pytest collect nothing, and names plugins.

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


def make(folder, honest):
    for place in (folder, folder / "a5_attention"):
        place.mkdir(exist_ok=True)
        (place / FILE).parent.mkdir(parents=True, exist_ok=True)
        (place / FILE).write_text(TEXT.lstrip())
    (folder / "convolution.py").write_text(honest)
