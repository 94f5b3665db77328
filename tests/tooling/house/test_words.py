"""Retired words and API names stay out of what students read, and out of messages."""

import ast
import re
import tomllib
from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from common.assignment import ROOT, assignment_files

# What not to write, as a regular expression, and what to write instead. A space also matches a
# line break. The words come from earlier versions of the course.
WORDS = {
    r"(?<!in )(?<!out of )(?<!take )(?<!takes )(?<!took )(?<!decimal )\b[Pp]laces?\b(?! of)": (
        "position, pixel, slot or index"
    ),
    r"\bin place of\b": "instead of",
    r"\b(?:[Qq]uer(?:y|ies)|[Tt]okens?|[Pp]ositions?|[Hh]eads?|[Ww]ords?|[Dd]ecoder) "
    r"(?:may |can |must |should )?looks? at\b": "attend to",
    r"\bdense(?:\d|_| layer| weight)|_dense\b": "linear",
    r"\bshortcuts?\b": "residual connection or residual stream",
    r"\bnormed\b": "normalized",
    r"\b[Ff](?:irst|resh) weights\b": "initial weights",
    r"\b[Ll]earned numbers\b": "parameters",
    r"(?<![Ss]quare )\broots? of\b": "square root of",
    r"\b(?:live|finished|unfinished|each|every|another|best|of the) beginnings?\b": "hypothesis",
    r"\b[Ll]ikeliest\b": "most likely",
    r"\bchances\b|\bchance (?:of|that)\b": "probability",
    r"\b(?:go|goes|went|going) on\b(?! (?:the|a|top|its|their|GitHub|Gradescope)\b)": "continue",
    r"\banew\b": "again",
    r"\bof bools?\b": "boolean",
    r"(?<![Tt]here )\b(?:is|are|be) no (?:array|file|float|integer|notebook|number|string|tensor|"
    r"text|question)s?\b": "is not a ...",
    r"\b[Hh]and(?:s|ed|ing)? (?:in|on|back|over)\b": "submit, pass or return",
    r"\b[Ss]har(?:e|es|ed|ing) out\b": "split or distribute",
    r"\bin the mean\b": "on average",
    r"\b[Mm]end(?:s|ed|ing)?\b": "fix",
    r"\bhang(?:s|ing)? on\b": "depend on",
    r"\bpeople read\b": "graded by the staff",
    r"\btold\b": "given, reported or shown",
    r"\b[Yy]ardsticks?\b": "baseline",
    r"\b(?:learn|learns|learned|learning) by heart\b": "memorize",
    r"\bof before\b": "previous",
    r"\b[Tt]his is what you get\b": "nothing: the program introduces the hint",
    r"\b(?:[Cc]haracteri|[Gg]enerali|[Ii]nitiali|[Mm]aximi|[Mm]inimi|[Nn]ormali|[Oo]ptimi|"
    r"[Qq]uanti|[Rr]ecogni|[Rr]egulari|[Ss]ummari|[Ss]ynchroni|[Tt]okeni|[Uu]tili|[Vv]ectori|"
    r"[Vv]isuali)s(?:e|es|ed|er|ers|ing|ation|ations)\b": "the spelling with -ize",
    r"\b[Aa]rtefact|\b[Bb]ehaviour|(?<![\w.])[Cc]olour(?!s?=)|\b[Cc]atalogue|\b[Dd]efence|\b[Nn]eighbour|"
    r"\b[Cc]entre[ds]?\b|\b[Gg]rey\b": "the American spelling",
}
# What follows the name of an argument: its type or its value. Plots have arguments named width
# and alpha, so these need the type.
INTEGER = r"(?:: int\b|=\d+\b(?!\.))"
NUMBER = r"(?:: float\b|=\d)"
# Names of an earlier API: in stubs, handouts, labs, figures, titles and hints only.
NAMES = {
    r"(?<!\w)Config\b": "TrainConfig",
    rf"\b(?:vocabulary|vocabulary_size){INTEGER}": "vocab_size",
    r"\bblock_size\b": "context_length",
    rf"\b(?:window|context){INTEGER}": "context_length",
    rf"\b(?:n_)?heads{INTEGER}": "num_heads",
    rf"\b(?:n_)?layers{INTEGER}": "num_layers",
    r"(?<!beam_)\bwidth: int\b": "d_model or beam_width",
    r"\balpha: float\b": "length_penalty",
    rf"\bkernel{INTEGER}": "kernel_size",
    rf"\bclip{NUMBER}": "max_norm",
    rf"\b(?:peak|floor){NUMBER}": "max_lr or min_lr",
    r"\bmicro_batches\b": "grad_accum_steps",
    r"\bprime\b": "prompt",
    r"\bPADDING\b|\bBEGIN\b(?! (?:QUESTION|SOLUTION|TESTS|PROMPT))|"
    r"\bEND\b(?! (?:QUESTION|SOLUTION|TESTS|PROMPT))": "PAD, BOS or EOS",
    r"\bdef learning_rate\(": "learning_rate_at",
    r"\bdef scores\(|\bGPT\.scores\b": "logits",
}
# Where a word is right: (file, words around it) and why.
ALLOWED = {
    (
        "autograder/grading/sandbox/wire/message_reader.py",
        "a reference that is no number",
    ): "of the protocol between judge and child: nobody reads it",
}
# What students and contributors read beside the handouts.
GUIDES = (
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "autograder/packaging/templates/handout/README.md",
    "autograder/runners/README.md",
    *sorted(str(file.relative_to(ROOT)) for file in (ROOT / "docs").glob("*.md")),
)
ASSIGNMENTS = [file.parent.name for file in assignment_files()]
PACKAGES = sorted(
    str(folder.relative_to(ROOT))
    for top in ("common", "autograder")
    for folder in (ROOT / top).iterdir()
    if folder.is_dir() and any(folder.rglob("*.py")) and folder.name != "standins"
)


@dataclass(frozen=True)
class Passage:
    """Some text of a file, and the line that it starts on."""

    file: str
    line: int
    text: str


def found(passages: Iterator[Passage], words: dict[str, str]) -> list[str]:
    """A sentence for each retired word: file, line, word, and what to write instead."""
    return [
        f"{passage.file}:{line}: '{match}' -> {instead}"
        for passage in passages
        for line, match, around, instead in matches(passage, words)
        if not is_allowed(passage.file, around)
    ]


def matches(passage: Passage, words: dict[str, str]) -> Iterator[tuple[int, str, str, str]]:
    """Line, match, the text around it, and the replacement, for each retired word of a passage."""
    lines = [line.strip().removeprefix("# ") for line in passage.text.split("\n")]
    starts = [0]
    for line in lines[:-1]:
        starts.append(starts[-1] + len(line) + 1)
    joined = " ".join(lines)
    hits = [
        (match, instead)
        for pattern, instead in words.items()
        for match in re.finditer(pattern, joined)
    ]
    for match, instead in sorted(hits, key=lambda hit: hit[0].start()):
        line = passage.line + bisect(starts, match.start()) - 1
        around = joined[max(0, match.start() - 60) : match.end() + 60]
        yield line, match[0], around, instead


def is_allowed(file: str, around: str) -> bool:
    """Whether the word is one of those that are right where they stand."""
    return any(file == place and words in around for place, words in ALLOWED)


def whole(file: Path, root: Path) -> Passage:
    """A file as one passage."""
    return Passage(str(file.relative_to(root)), 1, file.read_text("utf-8"))


def student_texts(name: str, root: Path = ROOT) -> Iterator[Passage]:
    """What students read of an assignment: stubs, handout, lab, figures, titles and hints."""
    for file in sorted((root / "assignments" / name).glob("*.py")):
        yield whole(file, root)
    yield whole(root / "assignments" / name / "README.md", root)
    solution = root / "solutions" / name
    for file in (solution / "lab.py", solution / "figures.py"):
        if file.is_file():
            yield whole(file, root)
    for file in sorted((root / "tests" / name).glob("test_*.py")):
        yield from titles(file, root)
    catalog = solution / "mistakes.toml"
    lines = catalog.read_text("utf-8").split("\n")
    hints = [mistake["hint"] for mistake in tomllib.loads("\n".join(lines))["mistakes"]]
    starts = [number for number, line in enumerate(lines, 1) if line.startswith("hint = ")]
    for start, hint in zip(starts, hints, strict=True):
        yield Passage(str(catalog.relative_to(root)), start, hint)


def titles(file: Path, root: Path = ROOT) -> Iterator[Passage]:
    """The docstrings of a module's tests, which results show as their titles."""
    for node in ast.parse(file.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            title = ast.get_docstring(node)
            if title:
                yield Passage(str(file.relative_to(root)), node.body[0].lineno, title)


def literals(file: Path, root: Path = ROOT) -> Iterator[Passage]:
    """The string literals of a module that are phrases: messages, but no docstrings."""
    tree = ast.parse(file.read_text("utf-8"))
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and " " in text.strip() and id(node) not in docstrings:
            yield Passage(str(file.relative_to(root)), node.lineno, text)


def messages(package: str, root: Path = ROOT) -> Iterator[Passage]:
    """The messages of a package of the machinery, stand-ins aside."""
    for file in sorted((root / package).rglob("*.py")):
        if "standins" not in file.relative_to(root).parts:
            yield from literals(file, root)


@pytest.mark.parametrize("name", ASSIGNMENTS, ids=lambda name: name.partition("_")[0])
def test_what_students_read_has_no_retired_words(name):
    lines = found(student_texts(name), WORDS | NAMES)
    assert not lines, "\n".join(lines)


@pytest.mark.parametrize("guide", GUIDES)
def test_guides_have_no_retired_words(guide):
    lines = found(iter([whole(ROOT / guide, ROOT)]), WORDS)
    assert not lines, "\n".join(lines)


@pytest.mark.parametrize("package", PACKAGES)
def test_messages_have_no_retired_words(package):
    lines = found(messages(package), WORDS)
    assert not lines, "\n".join(lines)


def test_messages_of_single_modules_have_no_retired_words():
    files = [*(ROOT / "common").glob("*.py"), *(ROOT / "autograder").glob("*.py")]
    lines = found((passage for file in files for passage in literals(file)), WORDS)
    assert not lines, "\n".join(lines)


def test_a_retired_word_is_found_with_file_line_and_replacement(tmp_path):
    name = "a1_some"
    files = {
        f"assignments/{name}/some.py": "x = 1\n# One place\n# is in place of\n# another.\n",
        f"assignments/{name}/README.md": "Two decimal places take place here.\nIt goes\non.\n",
        f"solutions/{name}/lab.py": "# Optimise it.\n",
        f"solutions/{name}/figures.py": "draw(layers=12, num_layers=12, width=0.8)\n",
        f"solutions/{name}/mistakes.toml": '[[mistakes]]\nhint = "A normed row."\n',
        f"tests/{name}/test_public.py": 'def test_it():\n    """It is told."""\n    told = 1\n',
    }
    for file, text in files.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    lines = found(student_texts(name, tmp_path), WORDS | NAMES)
    assert lines == [
        f"assignments/{name}/some.py:2: 'place' -> position, pixel, slot or index",
        f"assignments/{name}/some.py:3: 'in place of' -> instead of",
        f"assignments/{name}/README.md:2: 'goes on' -> continue",
        f"solutions/{name}/lab.py:1: 'Optimise' -> the spelling with -ize",
        f"solutions/{name}/figures.py:1: 'layers=12' -> num_layers",
        f"tests/{name}/test_public.py:2: 'told' -> given, reported or shown",
        f"solutions/{name}/mistakes.toml:2: 'normed' -> normalized",
    ]


def test_a_retired_word_is_found_in_messages_but_not_in_docstrings_and_names(tmp_path):
    (tmp_path / "room").mkdir()
    source = '"""It is told."""\ntold = "told"\n\nprint(f"{told} is told\\n"\n      "anew")\n'
    (tmp_path / "room" / "some.py").write_text(source)
    lines = found(messages("room", tmp_path), WORDS)
    assert lines == [
        "room/some.py:4: 'told' -> given, reported or shown",
        "room/some.py:5: 'anew' -> again",
    ]


def test_a_word_that_is_right_is_allowed_where_it_stands(monkeypatch):
    passage = Passage("some/README.md", 7, "It shows what goes on inside.")
    assert found(iter([passage]), WORDS) == ["some/README.md:7: 'goes on' -> continue"]
    monkeypatch.setitem(ALLOWED, ("some/README.md", "goes on inside"), "ordinary English")
    assert found(iter([passage]), WORDS) == []
    elsewhere = Passage("other/README.md", 7, passage.text)
    assert found(iter([elsewhere]), WORDS) == ["other/README.md:7: 'goes on' -> continue"]
