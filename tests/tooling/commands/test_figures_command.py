"""Tests of `figures`: which files it draws for which assignments."""

from types import SimpleNamespace

import pytest

from autograder.classroom.demo_picture import PICTURE
from common.assignment import ROOT, load_all


@pytest.mark.parametrize(
    ("named", "drawn"), [([], True), (["a1"], True), (["a3", "a1"], True), (["a2"], False)]
)
def test_the_picture_of_the_demo_is_drawn_with_its_assignment(
    autograder, monkeypatch, tmp_path, named, drawn
):
    written = []

    def grade(folder, on_test):
        on_test(1, 1)
        return SimpleNamespace(result="the result")

    commands = "autograder.commands.authoring_commands"
    image = ROOT / "assignments" / "image.png"
    monkeypatch.setattr(f"{commands}.draw_figures", lambda assignment, folder: [image])
    monkeypatch.setattr(f"{commands}.grade_demo", grade)
    monkeypatch.setattr(
        f"{commands}.write_picture", lambda result: written.append(result) or PICTURE
    )
    code, out, err = autograder("figures", *named)
    assert (code, err) == (0, "")
    assert written == ["the result"] * drawn
    lines = ["wrote assignments/image.png"] * len(named or load_all())
    place = f"wrote {PICTURE.relative_to(ROOT)}"
    assert sorted(out.splitlines()) == sorted([*lines, *[place] * drawn])
