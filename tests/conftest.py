"""Every test of the course gets its fixtures from common/plugin.py."""

import os

from common.threads import ONE_THREAD

os.environ.update(ONE_THREAD)  # before NumPy is loaded, and as in grading: small arrays like it
pytest_plugins = ["common.plugin"]
