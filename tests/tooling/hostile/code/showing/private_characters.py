"""Prints, raises and returns characters and escapes that could stand for those that can't be seen.

As: convolution.py
Earns: 1.7
"""

import sys

STANDS_FOR_ESCAPE = chr(0xF001B)
ODD = "".join(map(chr, (0x61C, 0xFEFF, 0xE0041, 0x2028, 0x85, 0xFF000, 0xFD83C, 0xD800, 0)))
TEXT = STANDS_FOR_ESCAPE + "[31m" + r"\U000F001B[31m \\U000f001b[31m" + ODD
TEXT += "".join(chr(0xF0000 + ord(letter)) for letter in "\x1b[2J\r\n")


def conv_output_size(size, kernel_size, stride=1, padding=0):
    written = TEXT.encode("utf-8", "surrogatepass") + b"\xff\xfe\x9b31m\xc2\x9b31m\xc2"
    sys.stdout.buffer.write(written)
    sys.stdout.buffer.flush()
    return TEXT.replace(chr(0xD800), "")


def conv2d_forward(x, w, b, stride=1, padding=0):
    raise RuntimeError(TEXT)


def im2col(x, kernel_size, stride=1, padding=0):
    raise ZeroDivisionError(STANDS_FOR_ESCAPE * 9000)


def col2im(cols, x_shape, kernel_size, stride=1, padding=0):
    return {TEXT: 1}


def max_pool2d_forward(x, kernel_size, stride=None, padding=0):
    exec(compile(f"raise KeyError({TEXT!r})", f"{STANDS_FOR_ESCAPE}[31m.py", "exec"))


def avg_pool2d_forward(x, kernel_size, stride=None, padding=0):
    return TEXT.encode("utf-8", "replace")
