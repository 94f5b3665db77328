"""Lets property tests take their time, and says in a run's last line what was not run, and why."""

from collections import Counter
from pathlib import Path

from hypothesis import HealthCheck, settings

# They judge what is right, not how long a busy machine takes to draw an example.
settings.register_profile(
    "conv2gpt", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("conv2gpt")

SKIPPED: Counter[tuple[str, str]] = Counter()


def pytest_runtest_logreport(report):
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        file = Path(report.nodeid.partition("::")[0]).name
        SKIPPED[file, reason.removeprefix("Skipped: ")] += 1


def pytest_unconfigure(config):
    """After pytest's own last line."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if SKIPPED and reporter:
        parts = [f"{count} of {file} ({reason})" for (file, reason), count in SKIPPED.items()]
        reporter.write_line(f"Not run here: {'; '.join(parts)}.")
