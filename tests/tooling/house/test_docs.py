"""Tests of README, docs and handouts: links, anchors, commands, and figures that could go stale."""

import importlib
import importlib.util
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder.__main__ import COMMANDS
from autograder.grading.sandbox.defenses import COSTS
from common.assignment import ROOT, load_all

MOST_README_LINES = 110
README = ROOT / "README.md"
HANDOUT_TEMPLATES = ROOT / "autograder" / "packaging" / "templates" / "handout"
# What students read: `make` there is the handout's own.
FOR_STUDENTS = [
    ROOT / "docs" / "students.md",
    HANDOUT_TEMPLATES / "README.md",
    *sorted((ROOT / "assignments").glob("*/README.md")),
]
FOR_STAFF = [
    README,
    *(file for file in sorted((ROOT / "docs").glob("*.md")) if file not in FOR_STUDENTS),
    ROOT / "autograder" / "runners" / "README.md",
    *(file for file in [ROOT / "CONTRIBUTING.md"] if file.is_file()),
]
PAGES = [*FOR_STAFF, *FOR_STUDENTS]
EACH_PAGE = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))

FENCE = re.compile(r"^( *)```.*?^\1```", re.MULTILINE | re.DOTALL)
CODE_SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
INDENTED = re.compile(r"^    (?! *- ).*$", re.MULTILINE)  # no item of a list
LINK = re.compile(r"\]\(([^()\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
MAKE = re.compile(r"(?<![\w./-])make((?: +[\w=./-]+)*)")
VARIABLE = re.compile(r"^([A-Z_]+)=")
# Environment variables that sources read, besides the variables of the Makefile.
ENVIRONMENT = {"TORCH_INDEX"}
MODULE = re.compile(r"python -m ([\w.]+)([^\n]*)")


def text_of(page: Path) -> str:
    """A page's text."""
    return page.read_text("utf-8")


def without_code(text: str) -> str:
    """A page's text without its code, in which brackets are no links."""
    return CODE_SPAN.sub("code", FENCE.sub("", text))


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    found: dict[str, int] = {}
    result = set()
    for heading in HEADING.findall(FENCE.sub("", text)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        anchor = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        count = found.get(anchor, 0)
        found[anchor] = count + 1
        result.add(f"{anchor}-{count}" if count else anchor)
    return result


def broken_links(page: Path) -> list[str]:
    """The relative links of a page that lead to no file or to no heading."""
    broken = []
    for link in LINK.findall(without_code(text_of(page))):
        if re.match(r"[a-z]+:", link):
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        if not target.exists():
            broken.append(f"{link}: no such file")
        elif anchor and (target.suffix != ".md" or anchor not in anchors(text_of(target))):
            broken.append(f"{link}: no such heading")
    return broken


def code_lines(page: Path) -> Iterator[str]:
    """The lines of a page's code: of blocks, without comments, and of spans in its text."""
    text = text_of(page)
    blocks = [match[0] for match in FENCE.finditer(text)]
    rest = FENCE.sub("", text)
    blocks += INDENTED.findall(rest)
    for line in "\n".join(blocks).replace("\\\n", " ").splitlines():
        yield line.split(" #")[0]
    for span in CODE_SPAN.findall(rest):
        yield " ".join(span.split()).replace("\\|", "|")


def unknown_targets(page: Path, makefile: str) -> list[str]:
    """The targets and variables of `make` in a page's code that its Makefile doesn't have."""
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    unknown = []
    for line in code_lines(page):
        for words in MAKE.findall(line):
            for word in words.split():
                variable = VARIABLE.match(word)
                known = is_read(variable[1], makefile) if variable else word in targets
                unknown += [] if known else [f"make {word}"]
    return unknown


def is_read(variable: str, makefile: str) -> bool:
    """Whether a Makefile, or what it runs, reads a variable."""
    return variable in ENVIRONMENT or bool(re.search(rf"\$\((?:\w+ )?{variable}\b", makefile))


def unknown_commands(page: Path) -> list[str]:
    """The commands and options of `python -m ...` in a page's code that don't exist."""
    unknown = []
    for line in code_lines(page):
        for module, rest in MODULE.findall(line):
            if module != "autograder":
                if not exists(module):
                    unknown.append(f"python -m {module}")
                continue
            words = shlex.split(re.split(r" (?:&&|\|) ", rest)[0])
            if not words or words == ["--help"]:
                continue
            known = options(words[0]) if words[0] in COMMANDS else None
            if known is None:
                unknown.append(f"python -m autograder {words[0]}")
                continue
            named = [word.partition("=")[0] for word in words[1:] if word.startswith("--")]
            unknown += [f"{words[0]} {option}" for option in named if option not in known]
    return unknown


def exists(module: str) -> bool:
    """Whether Python finds a module; one of the repo isn't imported for that."""
    path = ROOT / Path(*module.split("."))
    return (
        path.with_suffix(".py").is_file()
        or (path / "__main__.py").is_file()
        or ("." not in module and importlib.util.find_spec(module) is not None)
    )


def options(command: str) -> set[str]:
    """The options of a command."""
    module, _, attribute = COMMANDS[command].partition(":")
    function = getattr(importlib.import_module(module), attribute)
    return {"--help"} | {name for parameter in function.params for name in parameter.opts}


@EACH_PAGE
def test_every_link_leads_to_a_file_and_every_anchor_to_a_heading(page):
    assert broken_links(page) == []


@EACH_PAGE
def test_every_target_of_make_exists_with_its_variables(page):
    makefile = text_of(HANDOUT_TEMPLATES / "Makefile")
    if page in FOR_STAFF:  # whose pages also name what students run
        makefile += text_of(ROOT / "Makefile")
    assert unknown_targets(page, makefile) == []


@EACH_PAGE
def test_every_command_of_python_exists_with_its_options(page):
    assert unknown_commands(page) == []


def test_broken_links_are_found(tmp_path):
    (tmp_path / "other.md").write_text("# A `b.c` heading\n\n# Twice\n\n# Twice\n")
    page = tmp_path / "page.md"
    page.write_text(
        "# Top\n[a](other.md) [b](other.md#a-bc-heading) [c](#top) [d](https://example.org/x)\n"
        "[e](other.md#twice-1) `[f](none.md)`\n```\n[g](none.md)\n# No heading\n```\n"
    )
    assert broken_links(page) == []
    page.write_text("[a](none.md) [b](other.md#none) [c\nd](#top)\n")
    assert broken_links(page) == [
        "none.md: no such file",
        "other.md#none: no such heading",
        "#top: no such heading",
    ]


def test_unknown_commands_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "`make all A=a1` and `make fly`, but make no noise.\n\n"
        "    make B=a1            # make noise\n"
        "    python -m autograder grade a1 x --out y && python -m autograder paint\n"
        "    python -m autograder grade a1 x --loud | cat --all\n"
        "    python -m autograder.nowhere\n"
    )
    assert unknown_targets(page, "all: x\n\t@echo $(A)\n") == ["make B=a1", "make fly"]
    assert unknown_commands(page) == ["grade --loud", "python -m autograder.nowhere"]


def test_the_readme_is_short_and_leads_to_every_page_of_docs():
    text = text_of(README)
    assert len(text.splitlines()) <= MOST_README_LINES
    linked = {link.partition("#")[0] for link in LINK.findall(without_code(text))}
    assert {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")} <= linked


def test_every_page_of_docs_lists_its_sections():
    for page in (ROOT / "docs").glob("*.md"):
        text = text_of(page)
        sections = re.findall(r"^## (.+)$", FENCE.sub("", text), re.MULTILINE)
        listed = re.findall(r"^- \[(.+)\]\(#", text, re.MULTILINE)
        assert listed == [section.replace("`", "") for section in sections], page.name


def test_the_readme_gives_the_hours_of_every_assignment():
    rows = re.findall(r"^\| \[(a\d+)\]\(\S+\) \| ([\d.]+) \|", text_of(README), re.MULTILINE)
    minutes = {one.short: sum(entry.minutes for entry in one.exercises) for one in load_all()}
    assert dict(rows) == {name: f"{total / 60:.1f}" for name, total in minutes.items()}


def test_the_readme_does_not_overstate_how_many_mistakes_have_hints():
    files = (ROOT / "solutions").glob("*/mistakes.toml")
    count = sum(len(tomllib.loads(text_of(file))["mistakes"]) for file in files)
    stated = re.search(r"\| over (\d+) \|", text_of(README))
    assert int(stated[1]) < count


def test_the_page_on_security_names_what_each_missing_defense_costs():
    text = text_of(ROOT / "docs" / "security.md")
    for name, cost in COSTS.items():
        assert f"| {name} | {cost.replace('it could', 'student code could')} |" in text
