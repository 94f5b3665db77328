"""Builds the site with Sphinx into one folder that needs no network, and checks it for leaks."""

import html
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from autograder.packaging.leak_check import Secrets
from autograder.website.site_pages import write_pages
from common.assignment import ROOT, load_all
from common.errors import CourseError

SETTINGS = Path(__file__).parent  # where conf.py lies
STATIC = SETTINGS / "static"
PACKAGES = ("sphinx", "furo", "myst_nb", "sphinx_copybutton")
# Of the built files, these show what people wrote; the rest is Sphinx's own.
CHECKED = (".html", ".js", ".txt", ".ipynb")
TAG = re.compile(r"<[^<>]*>")  # which colors of code put between its words


def build_site(out: Path) -> None:
    """Write the whole site to a folder, replacing it; what Sphinx warns of is an error."""
    check_packages()
    assignments = load_all()
    with TemporaryDirectory(prefix="conv2gpt-site-") as scratch:
        pages, built = Path(scratch) / "pages", Path(scratch) / "site"
        pages.mkdir()
        write_pages(pages, assignments)
        run_sphinx(pages, built, Path(scratch) / "doctrees")
        check_leaks(built)
        shutil.rmtree(out, ignore_errors=True)
        out.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(built, out)


def check_packages() -> None:
    """Say which packages are missing, and how to get them."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise CourseError(
            f"`make site` needs {', '.join(missing)}: run `pip install -r requirements.txt`."
        )


def run_sphinx(pages: Path, built: Path, doctrees: Path) -> None:
    """Render the pages, in a process of its own; warnings are errors."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "--no-color"]
    command += ["-c", str(SETTINGS), "-d", str(doctrees), str(pages), str(built)]
    variables = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    finished = subprocess.run(
        command, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    if finished.returncode:
        said = finished.stderr.replace(f"{pages}/", "").strip()
        raise CourseError(f"The site has broken pages:\n{said}")


def check_leaks(built: Path) -> None:
    """Refuse a site with a line of a solution or of a lab's answers in it."""
    secrets = Secrets(load_all(), "")
    for file in sorted(built.rglob("*")):
        if file.suffix in CHECKED and "_static" not in file.parts:
            shown = html.unescape(TAG.sub("", file.read_text("utf-8")))
            secrets.check(f"site: {file.relative_to(built)}", shown.encode())
