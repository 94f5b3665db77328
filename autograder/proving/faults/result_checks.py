"""Checks that results.json is complete and honest, whatever fault was injected."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

KEYS = {"name", "score", "max_score", "status", "output", "visibility", "extra_data"}
UNFINISHED = "Grading did not finish."


def read_complete_result(file: Path) -> dict[str, Any]:
    """A result, as a reader finds it at any moment; ValueError if it isn't complete."""
    return complete_result(file.read_text("utf-8"))


def complete_result(text: str) -> dict[str, Any]:
    """The content of a results.json; ValueError if it isn't complete."""
    result = json.loads(text)
    if not isinstance(result, dict) or not result.get("tests"):
        raise ValueError("it has no tests")
    for test in result["tests"]:
        if not test.keys() >= KEYS:
            raise ValueError("a test in it lacks required fields")
        score, most = test["score"], test["max_score"]
        if not (math.isfinite(score) and 0 <= score <= most):
            raise ValueError(f"a score of {score} of {most}")
    return result


def points_by_test(result: Mapping[str, Any]) -> dict[str, float]:
    """The points of each test, by its name."""
    return {test["extra_data"]["test"]: test["score"] for test in result["tests"]}


def result_problems(
    result: Mapping[str, Any], earned: Mapping[str, float], ended_well: bool
) -> list[str]:
    """What is wrong with the last result of a grading. Empty where nothing is.

    earned: the points of an undisturbed grading, by test.
    ended_well: whether the judge ended by itself, without an error.
    """
    found = []
    got = points_by_test(result)
    if missing := earned.keys() - got.keys():
        found.append(f"{len(missing)} tests are missing")
    if unearned := [name for name in earned if got.get(name, 0) > earned[name]]:
        found.append(f"{unearned[0]} has points that were not earned")
    if others := [name for name in got if name not in earned and got[name]]:
        found.append(f"{others[0]} has points though it did not run")
    lost = tests_with_fewer_points(result, earned)
    if silent := [test["name"] for test in lost if len(test["output"].split("\n\n")) < 2]:
        found.append(f"{silent[0]} lost its points without an explanation")
    finished = result["extra_data"]["finished"]
    if not finished and UNFINISHED not in result["output"]:
        found.append("it doesn't say that grading did not finish")
    if ended_well and not finished and "could not grade" not in result["output"]:
        found.append("grading ended, and nothing says why it is incomplete")
    return found


def tests_with_fewer_points(
    result: Mapping[str, Any], earned: Mapping[str, float]
) -> list[dict[str, Any]]:
    """The tests that got fewer points than in an undisturbed grading."""
    return [
        test
        for test in result["tests"]
        if test["score"] < earned.get(test["extra_data"]["test"], 0)
    ]
