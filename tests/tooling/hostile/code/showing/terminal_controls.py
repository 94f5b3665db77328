"""Raises and prints what clears a screen, sets its title, and reverses or hides text around it.

As: convolution.py
Earns: 1.7
"""

CONTROLS = "\x1b[2J\x1b]0;title\x07\x9b2J\x9d0;t\x9c\x08\r\x7f\u202eesrever\u2066\u200b"


def conv_output_size(size, kernel_size, stride=1, padding=0):
    print(CONTROLS, "[bold red]")
    raise ValueError(CONTROLS + "[link=https://example.edu]100 of 100[/link]")


def conv2d_forward(x, w, b, stride=1, padding=0):
    raise type(f"Error{CONTROLS}", (Exception,), {})(CONTROLS)
