"""Takes and touches all memory that it can get, at most 6 GB.

As: convolution.py
Earns: 1.7
Elsewhere: yes
"""

KEPT = []


def conv_output_size(size, kernel_size, stride=1, padding=0):
    if size != 7:
        return None
    try:
        while len(KEPT) < 6 * 16:
            KEPT.append(bytearray(b"x") * (64 << 20))
    except MemoryError:
        taken = len(KEPT) // 16
        KEPT.clear()
        raise MemoryError(f"after {taken} GB") from None
    taken = len(KEPT) // 16
    KEPT.clear()
    raise RuntimeError("GOT " + f"THROUGH with {taken} GB")
