"""Names files with what clears a screen, reverses what follows, and makes links and formulas.

As: convolution.py
Earns: nothing
"""

NAMES = ("\x1b[2J\x9b2J.py", "\u202eyp.noitulovnoc", "[link=x]a[bold]", "=1+1;@x\r\n-1", "\u200b")


def make(folder, honest):
    for name in NAMES:
        (folder / name).write_text("x = 1")
