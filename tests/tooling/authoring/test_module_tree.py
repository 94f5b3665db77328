"""Tests of docs/architecture.md: its list of modules is current, and all paths in it exist."""

import re

import pytest

from autograder.authoring.module_tree import (
    MODULES_BEGIN,
    MODULES_END,
    PAGE,
    current_page,
    write_module_tree,
)
from common.assignment import ROOT
from common.errors import CourseError

TEXT = (ROOT / PAGE).read_text("utf-8")


@pytest.fixture
def checkout(tmp_path):
    """A checkout with three modules, and a page without their list."""
    files = {
        "autograder/__init__.py": '"""Grades."""',
        "autograder/inner/judge.py": '"""Runs tests.\n\nAnd more.\n"""',
        "common/__init__.py": "",
        PAGE: f"Before.\n{MODULES_BEGIN}\n{MODULES_END}\nAfter.\n",
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    return tmp_path


def test_the_list_of_modules_is_current():
    assert current_page() == TEXT, f"`make stubs` brings {PAGE} up to date"


def test_the_list_has_a_line_for_each_package_and_module(checkout):
    assert write_module_tree(checkout) == [checkout / PAGE]
    assert (checkout / PAGE).read_text() == (
        f"Before.\n{MODULES_BEGIN}\n"
        "- **`autograder/`**: Grades.\n"
        "    - **`autograder/inner/`**\n"
        "        - `judge.py`: Runs tests.\n"
        "- **`common/`**\n"
        f"{MODULES_END}\nAfter.\n"
    )
    assert write_module_tree(checkout) == []


def test_a_page_without_markers_is_refused(checkout):
    (checkout / PAGE).write_text("Nothing.\n")
    with pytest.raises(CourseError, match=r"architecture\.md must contain"):
        write_module_tree(checkout)


def test_every_file_and_folder_that_the_text_names_exists():
    text = TEXT.partition(MODULES_BEGIN)[0]
    named = {
        name.replace("aN", "a1_convolution") for name in re.findall(r"`([\w/]+/[\w./]*)`", text)
    }
    assert len(named) > 50
    missing = [
        name
        for name in named
        if not any((ROOT / top / name).exists() for top in ("", "autograder"))
    ]
    assert [name for name in missing if not name.startswith("dist/")] == []


def test_every_link_of_the_page_leads_somewhere():
    headings = {
        re.sub(r"[^\w -]", "", line.lstrip("# ").lower()).replace(" ", "-")
        for line in TEXT.splitlines()
        if line.startswith("#")
    }
    links = re.findall(r"\]\(#([^)]+)\)", TEXT)
    assert links and {*links} <= headings
