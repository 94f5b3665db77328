"""Every test of the course gets its fixtures from common/plugin.py."""

pytest_plugins = ["common.plugin"]
