"""Parses Gradescope's submission_metadata.yml: who submitted what."""

from dataclasses import dataclass
from datetime import date
from typing import Any

import yaml

from autograder.batch.batch_records import Student
from common.visible_text import visible

METADATA = "submission_metadata.yml"


@dataclass(frozen=True)
class Facts:
    """What the file says of one submission."""

    students: tuple[Student, ...]
    created_at: str


class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Plain values only. An object of Ruby's is read as the data that it consists of."""


def plain(loader: Any, suffix: str, node: yaml.Node) -> Any:
    """The data of a node with a tag that isn't YAML's own."""
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return loader.construct_scalar(node)


Loader.add_multi_constructor("!", plain)


def read_metadata(content: bytes) -> tuple[dict[str, Facts], str]:
    """What is known of each submission, and what was wrong with the file, if anything."""
    try:
        document = yaml.load(content, Loader)
    except Exception as error:  # besides YAML's own errors, dates out of range and the like
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1})" if mark else ""
        return {}, f"{METADATA} is damaged{where}: names, ids and groups are missing."
    if not isinstance(document, dict):
        return {}, f"{METADATA} contains no submissions: names, ids and groups are missing."
    return {str(key): facts(value) for key, value in document.items()}, ""


def facts(value: Any) -> Facts:
    """One submission's entry, or as much of it as can be understood."""
    entry = without_colons(value)
    submitters = entry.get("submitters")
    known = [without_colons(one) for one in submitters] if isinstance(submitters, list) else []
    students = tuple(
        Student(text(one.get("name")), text(one.get("sid")), text(one.get("email")))
        for one in known
        if one
    )
    return Facts(students, text(entry.get("created_at")))


def without_colons(value: Any) -> dict[str, Any]:
    """A mapping with Ruby's symbols as plain names; an empty one for what is no mapping."""
    if not isinstance(value, dict):
        return {}
    return {str(key).strip(":"): item for key, item in value.items()}


def text(value: Any) -> str:
    """A value as one line, of whole characters: files can't hold halves of them."""
    if value is None:
        return ""
    shown = value.isoformat() if isinstance(value, date) else str(value)
    return visible(" ".join(shown.split()))
