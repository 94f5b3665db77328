"""Takes for ever to be imported, so that each single test meets it.

As: convolution.py
Earns: nothing
Elsewhere: yes
"""

import time

time.sleep(60)
