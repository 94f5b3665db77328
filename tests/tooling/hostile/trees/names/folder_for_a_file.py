"""Submits a package where a file is expected, and three copies of the file below it.

As: convolution.py
Earns: nothing
"""


def make(folder, honest):
    (folder / "convolution.py").mkdir()
    (folder / "convolution.py" / "__init__.py").write_text(honest)
    for name in ("a", "b", "c"):
        (folder / name).mkdir()
        (folder / name / "convolution.py").write_text(honest)
