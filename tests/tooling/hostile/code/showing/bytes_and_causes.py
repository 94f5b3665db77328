"""Puts inputs into what is no message: bytes, causes, notes, arguments and names of exceptions.

As: convolution.py
Earns: 1.7
"""

WORD = "LEA" + "KED"


def conv_output_size(size, kernel_size, stride=1, padding=0):
    return f"{WORD} {size}".encode()


def conv2d_forward(x, w, b, stride=1, padding=0):
    return {f"{WORD} {x.shape}".encode(): x}, (f"{WORD} {x}".encode(),) * 3


def im2col(x, kernel_size, stride=1, padding=0):
    try:
        raise KeyError(f"{WORD} {x.shape}")
    except KeyError as cause:
        error = UnicodeDecodeError("utf-8", f"{WORD} {x}".encode(), 0, 1, f"{WORD} {x.shape}")
        error.add_note(f"{WORD} {x}")
        raise error from cause


def col2im(cols, x_shape, kernel_size, stride=1, padding=0):
    raise ImportError(f"{WORD} {x_shape}", name=f"{WORD} {x_shape}", path=f"/{WORD}/{x_shape}")


def max_pool2d_forward(x, kernel_size, stride=None, padding=0):
    raise SyntaxError(WORD, (f"{WORD}{x.shape}.py", 1, 1, f"{WORD} {x}", 1, 2))


def avg_pool2d_forward(x, kernel_size, stride=None, padding=0):
    raise ExceptionGroup(f"{WORD} {x.shape}", [OSError(2, WORD, f"{WORD} {x.shape}")])
