"""The bookkeeping of a batch, with engines that only pretend to grade."""

import csv
import errno
import io
import json
import os
import re
import shutil
import socket
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from rich.console import Console

from autograder.batch import batch_records, batch_run, work_queue
from autograder.batch.batch_records import (
    RESULTS,
    STATES,
    Batch,
    Submitted,
    read_batch,
    write_state,
)
from autograder.batch.batch_run import Order, run_batch
from autograder.batch.engines import judge_settings, local_engine, ray_engine
from autograder.batch.engines.driver_scratch import PREFIX
from autograder.batch.engines.ray_engine import RayEngine, check_somebody_listens
from autograder.batch.event_log import Log
from autograder.batch.input.export_reader import read_export
from autograder.batch.input.previous_export import ids
from autograder.batch.output import grade_tables
from autograder.batch.output.batch_comparison import changes
from autograder.batch.work_queue import Attempt, Tally, Work
from autograder.commands import batch as commands
from autograder.commands.batch import tell
from autograder.commands.following import following, picture
from autograder.grading.channel import ChannelClosed
from autograder.grading.intake import MAX_FILE_BYTES
from autograder.grading.processes import ClassJudge
from autograder.grading.slots import COUNT
from autograder.grading.warm import Graded, HandedIn
from common.assignment import LAB_FILE, ROOT, load_assignment
from common.errors import CourseError
from tests.tooling.scratch import python

A1 = load_assignment("a1")
NAMES = ("ada", "alan", "grace")
EXERCISE = A1.exercises[0].number


def graded(score: float = 1.0) -> Graded:
    """A result as a judge tells it."""
    test = {
        **{"name": "sizes", "number": EXERCISE, "score": score, "max_score": 2.0},
        **{"status": "passed" if score else "failed", "output": "sizes\n\nThe size is wrong."},
        "extra_data": {"test": "test_sizes", "ran": True},
        **{"visibility": "visible", "tags": []},
    }
    result = {"output": "", "execution_time": 1, "extra_data": {}, "tests": [test]}
    return Graded(json.dumps(result).encode(), score, 2.0, 0.5)


class Pretender:
    """An engine that gives the answers that it was given, by submission."""

    name = "pretended"
    slots = 1

    def __init__(self, answers: dict[str, list[Graded]] | None = None, after=lambda: None) -> None:
        self.answers = answers or {}
        self.after = after
        self.asked: list[str] = []
        self.questions: list[bytes] = []

    def run(self, work: Work, tick: Callable[[], None]) -> None:
        while (attempt := work.take(1)) is not None:
            self.asked.append(attempt.id)
            self.questions.append(attempt.question)
            answers = self.answers.get(attempt.id) or [graded()]
            work.finish(1, attempt, answers.pop(0) if len(answers) > 1 else answers[0])
            self.after()

    def close(self) -> None:
        pass


@pytest.fixture
def order(tmp_path, monkeypatch) -> Order:
    """Three submissions, and a batch to come; without waiting between attempts, or for a zip."""
    monkeypatch.setattr(work_queue, "PAUSES", (0.01, 0.02, 0.03))
    (tmp_path / "grader.zip").write_bytes(b"a zip")
    built = SimpleNamespace(autograder=tmp_path / "grader.zip")
    monkeypatch.setattr(batch_run, "build", lambda assignment: built)
    for name in NAMES:
        (tmp_path / "class" / name).mkdir(parents=True)
        (tmp_path / "class" / name / "convolution.py").write_text(f"name = {name!r}\n")
    return Order(A1, tmp_path / "class", tmp_path / "out")


def carry_out(order: Order, engine: Pretender) -> tuple[Batch, Work]:
    """Run a batch with an engine that is there already."""
    return run_batch(order, lambda archive: engine, lambda work, engine: lambda: None)


def changed(order: Order, **what) -> Order:
    """The order with something else in it."""
    return Order(**{**vars(order), **what})


def test_each_submission_gets_a_result_a_row_and_a_line_in_the_log(order):
    batch, _ = carry_out(order, Pretender({"alan": [graded(2.0)]}))
    assert {e.id: (e.status, e.score, e.maximum, e.attempts) for e in batch.entries} == {
        "ada": ("graded", 1.0, 2.0, 1),
        "alan": ("graded", 2.0, 2.0, 1),
        "grace": ("graded", 1.0, 2.0, 1),
    }
    rows = list(csv.DictReader((order.out / "grades.csv").open()))
    assert [(row["name"], row["total"], row[EXERCISE], row["status"]) for row in rows] == [
        ("ada", "1", "1", "graded"),
        ("alan", "2", "2", "graded"),
        ("grace", "1", "1", "graded"),
    ]
    canvas = list(csv.reader((order.out / "canvas.csv").open()))
    assert canvas[0][:5] == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
    assert canvas[1][0].strip() == "Points Possible" and canvas[1][-1] == "2"
    assert [row[-1] for row in canvas[2:]] == ["1", "2", "1"]
    events = [json.loads(line)["event"] for line in (order.out / "log.jsonl").open()]
    assert events == ["started", "graded", "graded", "graded", "ended"]


def test_a_second_run_grades_only_what_has_changed(order):
    carry_out(order, Pretender())
    again = Pretender()
    carry_out(order, again)
    assert again.asked == []
    (order.export / "alan" / "convolution.py").write_text("name = 'another'\n")
    carry_out(order, again)
    assert again.asked == ["alan"]


@pytest.mark.parametrize(
    "harm",
    ("the state is gone", "the result is gone", "the state is damaged", "the result is cut off"),
)
def test_what_was_not_written_to_its_end_is_graded_again(harm, order):
    carry_out(order, Pretender())
    if harm == "the result is gone":
        (order.out / "results" / "ada.json").unlink()
    elif harm == "the state is gone":
        (order.out / "state" / "ada.json").unlink()
    elif harm == "the result is cut off":
        (order.out / "results" / "ada.json").write_bytes(b"")
    else:
        (order.out / "state" / "ada.json").write_text('{"key": "')
    batch, _ = carry_out(changed(order, only=("alan",)), Pretender())  # which leaves it alone
    assert [entry.status for entry in batch.entries] == ["waiting", "graded", "graded"]
    again = Pretender()
    batch, _ = carry_out(order, again)
    assert again.asked == ["ada"]
    assert all(entry.status == "graded" for entry in batch.entries)


def test_another_zip_or_a_gpu_grades_everything_again(order, tmp_path):
    carry_out(order, Pretender())
    again = Pretender()
    carry_out(changed(order, gpus=1.0), again)
    assert len(again.asked) == 3
    (tmp_path / "grader.zip").write_bytes(b"another zip")
    carry_out(changed(order, gpus=1.0), again)
    assert len(again.asked) == 6


def test_a_fault_of_the_machinery_is_tried_again_three_times_and_is_never_a_zero(order):
    broken = Graded(fault="the judge died")
    engine = Pretender({"ada": [broken], "alan": [broken, broken, broken, graded()]})
    batch, _ = carry_out(order, engine)
    assert engine.asked.count("ada") == engine.asked.count("alan") == 4
    by_id = {entry.id: entry for entry in batch.entries}
    assert (by_id["ada"].status, by_id["ada"].score) == ("failed", None)
    assert by_id["ada"].why == "the judge died" and by_id["ada"].attempts == 4
    assert (by_id["alan"].status, by_id["alan"].attempts) == ("graded", 4)
    assert not (order.out / "results" / "ada.json").exists() and batch.result(by_id["ada"]) is None
    rows = {row["name"]: row for row in csv.DictReader((order.out / "grades.csv").open())}
    assert (rows["ada"]["total"], rows["ada"]["status"]) == ("", "failed")
    assert "ada" not in (order.out / "canvas.csv").read_text()
    again = Pretender()
    batch, _ = carry_out(changed(order, failed=True), again)
    assert again.asked == ["ada"] and all(e.status == "graded" for e in batch.entries)


def test_nothing_that_can_be_read_is_graded_as_such_and_says_so(order):
    (order.export / "ada" / "convolution.py").rename(order.export / "ada" / "conv.py")
    batch, _ = carry_out(order, Pretender({"ada": [graded(0.0)]}))
    assert (batch.entries[0].status, batch.entries[0].score) == ("unreadable", 0.0)
    assert batch.entries[0].why == "convolution.py is missing. Found: conv.py."


@pytest.mark.parametrize("call", ("io.open", "os.scandir"))
def test_what_the_machine_cannot_read_has_no_score(call, order, monkeypatch):
    original = {"io.open": io.open, "os.scandir": os.scandir}[call]

    def failing(place, *given, **more):
        if Path(place).name in ("ada", "convolution.py") and "ada" in Path(place).parts:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return original(place, *given, **more)

    monkeypatch.setattr(call, failing)
    batch, _ = carry_out(order, Pretender())
    assert [entry.status for entry in batch.entries] == ["failed", "graded", "graded"]
    assert batch.entries[0].score is None
    assert batch.entries[0].why.endswith("can't be read: Input/output error.")


def test_a_judge_is_told_why_a_file_was_not_taken(order):
    (order.export / "ada" / "convolution.py").write_bytes(b"#" * (MAX_FILE_BYTES + 1))
    engine = Pretender()
    carry_out(order, engine)
    asked = msgspec.msgpack.decode(engine.questions[0], type=HandedIn)
    assert (asked.files, asked.reasons) == (
        {},
        {"convolution.py": "convolution.py is larger than 1024 KB: not taken."},
    )


def test_what_no_submission_could_survive_stops_the_batch_at_once(order):
    engine = Pretender({name: [Graded(fault="no protection", hopeless=True)] for name in NAMES})
    batch, done = carry_out(order, engine)
    assert len(engine.asked) == 1 and done.stopped == "no protection"
    assert {entry.status for entry in batch.entries} == {"waiting"}


def test_a_result_that_cannot_be_written_stops_the_batch_and_is_graded_again(order, monkeypatch):
    def full(*given) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(work_queue, "write_state", full)
        batch, done = carry_out(order, Pretender())
    assert done.stopped == f"{order.out} can't be written: No space left on device"
    assert {entry.status for entry in batch.entries} == {"waiting"}
    with monkeypatch.context() as patched, pytest.raises(CourseError, match="No space left"):
        patched.setattr(batch_run, "write_tables", full)
        carry_out(order, Pretender())
    again = Pretender()
    carry_out(order, again)
    assert again.asked == []


def test_a_grader_that_never_works_is_given_up(order, monkeypatch):
    monkeypatch.setattr(work_queue, "IN_A_ROW", 2)
    batch, done = carry_out(order, Pretender({name: [Graded(fault="dead")] for name in NAMES}))
    assert "in a row could not be graded, the last because: dead" in done.stopped
    assert [entry.status for entry in batch.entries].count("failed") == 2


def test_an_interrupt_leaves_tables_and_a_batch_that_goes_on(order):
    def interrupt() -> None:
        raise KeyboardInterrupt

    batch, done = carry_out(order, Pretender(after=interrupt))
    assert done.stopped == batch_run.BY_HAND
    assert [entry.status for entry in batch.entries] == ["graded", "waiting", "waiting"]
    assert (order.out / "grades.csv").is_file()
    again = Pretender()
    carry_out(order, again)
    assert again.asked == ["alan", "grace"]


@pytest.mark.parametrize(
    ("anew", "told"), [(False, "goes on where it was"), (True, "keep their earlier results")]
)
def test_what_is_told_of_an_interrupt_is_what_the_next_run_does(anew, told, order):
    def interrupt() -> None:
        raise KeyboardInterrupt

    if anew:
        carry_out(order, Pretender())
    screen = io.StringIO()
    stopped = carry_out(changed(order, anew=anew), Pretender(after=interrupt))
    tell(Console(file=screen, width=80), *stopped)
    assert told in screen.getvalue()
    again = Pretender()
    carry_out(changed(order, anew=anew), again)
    assert again.asked == [*(NAMES if anew else NAMES[1:])]


def test_only_the_named_are_graded_and_again_if_asked(order):
    carry_out(order, Pretender())
    again = Pretender({"grace": [graded(0.0)]})
    batch, _ = carry_out(changed(order, only=("grace",), anew=True), again)
    assert again.asked == ["grace"] and batch.entries[2].score == 0.0
    with pytest.raises(CourseError, match="no submission nobody"):
        carry_out(changed(order, only=("nobody",)), again)


def test_a_regrade_that_the_machinery_fails_keeps_the_older_result(order):
    carry_out(order, Pretender({"ada": [graded(2.0)]}))
    before = (order.out / "results" / "ada.json").read_bytes()
    screen = io.StringIO()
    broken = Pretender({"ada": [Graded(fault="the judge died")], "alan": [graded(0.0)]})
    batch, done = carry_out(changed(order, anew=True), broken)
    tell(Console(file=screen, width=80), batch, done)
    ada = batch.entries[0]
    assert (ada.status, ada.score, done.tally.failed) == ("graded", 2.0, 1)
    assert (order.out / "results" / "ada.json").read_bytes() == before
    told = "Grading it again failed: the judge died. This is the older result."
    assert ada.older == told and f"ada: {told}" in screen.getvalue()
    assert "regrade" in screen.getvalue() and "tries them again" in screen.getvalue()
    rows = {row["name"]: row for row in csv.DictReader((order.out / "grades.csv").open())}
    assert (rows["ada"]["total"], rows["ada"]["why"]) == ("2", told)
    assert (rows["alan"]["total"], rows["alan"]["why"]) == ("0", "")
    assert "ada,,,,,2\n" in (order.out / "canvas.csv").read_text()
    assert told in (order.out / "report.html").read_text()
    events = [json.loads(line) for line in (order.out / "log.jsonl").open()]
    (event,) = [event for event in events if event["event"] == "grading again failed"]
    assert (event["id"], event["why"], event["kept"]) == ("ada", "the judge died", 2.0)


@pytest.mark.parametrize("failed", (True, False))
def test_what_could_not_be_graded_again_is_tried_by_the_next_run(failed, order):
    carry_out(order, Pretender())
    broken = Pretender({"ada": [Graded(fault="the judge died")]})
    carry_out(changed(order, anew=True), broken)
    again = Pretender({"ada": [graded(0.0)]})
    batch, _ = carry_out(changed(order, failed=failed), again)
    assert again.asked == ["ada"]
    assert (batch.entries[0].score, batch.entries[0].older) == (0.0, "")


@pytest.mark.parametrize(("options", "gpus"), (((), 0.5), (("--gpus-per-submission", "0"), 0.0)))
def test_a_batch_with_gpus_is_regraded_with_them_unless_told_otherwise(
    options, gpus, order, monkeypatch
):
    carry_out(changed(order, gpus=0.5), Pretender())
    orders: list[Order] = []
    monkeypatch.setattr(commands, "carry_out", lambda order, *engine: orders.append(order))
    commands.regrade.main([str(order.out), "--failed", *options], standalone_mode=False)
    assert [order.gpus for order in orders] == [gpus]


@pytest.mark.parametrize("engine", ("local", "ray"))
def test_judges_are_told_where_submissions_and_results_lie(engine, order, monkeypatch):
    given: dict[str, tuple[Path, ...]] = {}

    class Started(Exception):
        pass

    def start(name: str) -> Callable:
        def started(*arguments) -> None:
            given[name] = arguments[-1]
            raise Started

        return started

    monkeypatch.setattr(commands, "load_ray", lambda: None)
    monkeypatch.setattr(commands, "LocalEngine", start("local"))
    monkeypatch.setattr(commands, "RayEngine", start("ray"))
    with pytest.raises(Started):
        commands.carry_out(order, engine, None, None)
    assert given == {engine: (order.export, order.out, order.out / "batch.json")}
    told = judge_settings.arguments_of(A1, 1.0, (Path("class"),))
    assert told == ("a1", "gpu", str(Path.cwd() / "class"))


def test_a_folder_holds_one_batch_of_one_assignment_at_a_time(order, tmp_path):
    carry_out(order, Pretender())
    with pytest.raises(CourseError, match="holds a batch of a1_convolution"):
        carry_out(changed(order, assignment=load_assignment("a2")), Pretender())
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("mine")
    with pytest.raises(CourseError, match="not empty, and holds no batch"):
        carry_out(changed(order, out=tmp_path / "full"), Pretender())
    with batch_run.opened(order.out), pytest.raises(CourseError, match="Another batch"):
        carry_out(order, Pretender())


def test_a_batch_that_was_killed_before_its_first_submission_goes_on(order, monkeypatch):
    def killed(assignment) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as early, pytest.raises(KeyboardInterrupt):
        early.setattr(batch_run, "build", killed)
        carry_out(order, Pretender())
    batch, _ = carry_out(order, Pretender())
    assert {entry.status for entry in batch.entries} == {"graded"}


def test_a_batch_clears_what_a_killed_driver_has_left(order, tmp_path, monkeypatch):
    (tmp_path / "temporary" / f"{PREFIX}x" / "source").mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    carry_out(order, Pretender())
    assert not [*(tmp_path / "temporary").iterdir()]


def test_another_class_does_not_replace_the_one_that_is_there(order, tmp_path):
    carry_out(order, Pretender())
    (tmp_path / "others" / "linus").mkdir(parents=True)
    with pytest.raises(CourseError, match="none of its submissions is in"):
        carry_out(changed(order, export=tmp_path / "others"), Pretender())
    assert len([*(order.out / "results").iterdir()]) == len(NAMES)


def test_what_is_refused_changes_nothing_of_the_batch_that_is_there(order):
    def without_gpu(archive: Path) -> Pretender:
        raise CourseError("There is no GPU here.")

    carry_out(order, Pretender())
    before = (order.out / "batch.json").read_bytes()
    with pytest.raises(CourseError, match="no GPU"):
        run_batch(changed(order, gpus=0.5), without_gpu, lambda work, engine: lambda: None)
    with pytest.raises(CourseError, match="no submission nobody"):
        carry_out(changed(order, gpus=0.5, only=("nobody",)), Pretender())
    assert (order.out / "batch.json").read_bytes() == before


def test_a_batch_is_not_written_among_the_submissions(order):
    with pytest.raises(CourseError, match="where it would be a submission"):
        carry_out(changed(order, out=order.export / "out"), Pretender())
    assert sorted(item.name for item in order.export.iterdir()) == sorted(NAMES)


def test_only_without_an_id_is_not_everyone(order):
    for command in ("batch", "regrade"):
        given = (command, *(("a1", order.export, "--out") * (command == "batch")), order.out)
        done = python("-m", "autograder", *given, "--only", "", cwd=ROOT)
        assert (done.returncode, done.stderr) == (2, "--only names no submission.\n")


@pytest.mark.parametrize(
    ("count", "with_lab"),
    [(0, False), (1, False), (1, True), (3, False), (3, True)],  # every assignment has a lab
)
def test_zeros_for_what_could_not_be_read_are_told(count, with_lab, order):
    for name in NAMES[:count]:
        (order.export / name / "convolution.py").rename(order.export / name / "lenet.py")
        if with_lab:
            (order.export / name / LAB_FILE).write_text("{}")
    screen = io.StringIO()
    batch, done = carry_out(order, Pretender())
    tell(Console(file=screen, width=80), batch, done)
    before, _, _ = screen.getvalue().partition("3 graded, 0 kept")
    missing = "convolution.py is missing. Found: lenet.py."
    doubt = f"No submission in {order.export} holds a convolution.py: is it an export of a1?"
    names = () if with_lab else NAMES[:count]
    assert before.splitlines() == [
        *([doubt] if count == len(NAMES) else []),
        *(f"{name} is graded as nothing handed in: {missing}" for name in names),
    ]
    assert done.doubt == (doubt if count == len(NAMES) else "")
    assert (doubt in batch.index.notes) == bool(done.doubt)
    whys = [row["why"] for row in csv.DictReader((order.out / "grades.csv").open())]
    assert whys == [missing] * count + [""] * (len(NAMES) - count)


def test_an_export_of_another_assignment_ends_with_an_error(order, monkeypatch):
    for name in NAMES:
        (order.export / name / "convolution.py").rename(order.export / name / "lenet.py")
    monkeypatch.setattr(commands, "LocalEngine", lambda *given: Pretender())
    with pytest.raises(SystemExit) as left:
        commands.carry_out(order, "local", None, None)
    assert left.value.code == 1


def test_what_an_export_lacks_hides_no_doubt_about_the_rest(order):
    given = export_of(order, {"11": "ada", "12": "alan"})
    (given.export / "11" / "convolution.py").rename(given.export / "11" / "lenet.py")
    shutil.rmtree(given.export / "12")
    assert "is it an export of a1?" in carry_out(given, Pretender())[1].doubt


def test_a_damaged_export_is_not_tried_again_and_says_what_helps(order):
    with zipfile.ZipFile(order.export.with_name("all.zip"), "w") as archive:
        for name in NAMES:
            archive.writestr(f"class/{name}/convolution.py", f"name = {name!r}")
    whole = order.export.with_name("all.zip")
    content = whole.read_bytes()
    whole.write_bytes(content.replace(b"name = 'alan'", b"name = 'ALAN'"))
    given = changed(order, export=whole)
    batch, done = carry_out(given, Pretender())
    assert [entry.status for entry in batch.entries] == ["graded", "failed", "graded"]
    assert done.tally.retries == 0
    screen = io.StringIO()
    tell(Console(file=screen, width=200), batch, done)
    assert "regrade" not in screen.getvalue()
    assert f"`python -m autograder batch a1 EXPORT --out {order.out}`" in screen.getvalue()
    whole.write_bytes(content)
    batch, done = carry_out(given, Pretender())
    assert (done.tally.graded, done.tally.kept) == (1, 2)


def test_only_takes_ids_folders_and_names_of_students(order, tmp_path):
    folder = tmp_path / "people"
    for name in ("J. Smith", "Zoë"):
        (folder / name).mkdir(parents=True)
        (folder / name / "convolution.py").write_text("")
    given = changed(order, export=folder)
    for name in ("J._Smith", "J. Smith"):
        engine = Pretender()
        carry_out(changed(given, only=(name,), anew=True), engine)
        assert engine.asked == ["J._Smith"]
    with pytest.raises(CourseError, match=r"no submission J\.Smith .* The nearest id is J\._Smith"):
        carry_out(changed(given, only=("J.Smith",)), Pretender())
    assert commands.split(None, None, ("J. Smith, Zoë", "11")) == ("J. Smith", "Zoë", "11")
    both = export_of(order, {"11": "ada", "12": "ada"})
    with pytest.raises(CourseError, match="ada is in several submissions: 11, 12"):
        carry_out(changed(both, only=("ada",), out=tmp_path / "both"), Pretender())


def export_of(order: Order, students: dict[str, str]) -> Order:
    """The order with an export of these submissions, and whose they are."""
    folder = order.export.parent / f"export-{'-'.join(students)}"
    for name in students:
        (folder / name).mkdir(parents=True)
        (folder / name / "convolution.py").write_text(f"name = {name!r}\n")
    (folder / "submission_metadata.yml").write_text(
        "".join(
            f"{name}:\n  :submitters:\n  - :name: {who}\n    :email: {who}@example.edu\n"
            for name, who in students.items()
        )
    )
    return changed(order, export=folder)


def test_results_stay_of_what_a_later_export_lacks_and_one_line_says_so(order):
    whole = export_of(order, {"11": "ada", "12": "alan", "13": "grace"})
    carry_out(whole, Pretender({"11": [graded(2.0)]}))
    result = (order.out / "results" / "11.json").read_bytes()
    engine, screen = Pretender(), io.StringIO()
    part = export_of(order, {"12": "alan", "14": "linus"})
    batch, done = carry_out(changed(part, anew=True), engine)
    tell(Console(file=screen, width=80), batch, done)
    assert engine.asked == ["12", "14"] and not done.tally.failed
    assert {e.id: (e.score, e.absent) for e in batch.entries} == {
        **{"12": (1.0, False), "14": (1.0, False), "11": (2.0, True), "13": (1.0, True)}
    }
    assert (order.out / "results" / "11.json").read_bytes() == result
    assert screen.getvalue().count("Not in this export") == 1
    assert "Not in this export, results stay: 11, 13.\n" in screen.getvalue()
    rows = {row["name"]: row for row in csv.DictReader((order.out / "grades.csv").open())}
    assert rows["ada"]["why"] == "It is not in this export. This is its result of before."
    assert (rows["ada"]["total"], rows["alan"]["why"]) == ("2", "")
    assert "\nada,,,ada,,2\n" in (order.out / "canvas.csv").read_text()
    with pytest.raises(CourseError, match="no submission 11 in"):
        carry_out(changed(part, only=("11",)), Pretender())


def test_what_a_later_export_lacks_is_there_again_with_the_earlier_one(order):
    whole = export_of(order, {"11": "ada", "12": "alan", "13": "grace"})
    carry_out(whole, Pretender())
    carry_out(export_of(order, {"12": "alan"}), Pretender())
    again = Pretender()
    batch, _ = carry_out(whole, again)
    assert again.asked == [] and batch.index.notes == ()
    assert [(entry.id, entry.older) for entry in batch.entries] == [
        *(("11", ""), ("12", ""), ("13", ""))
    ]


def test_a_submission_that_its_students_have_replaced_counts_no_more(order):
    carry_out(export_of(order, {"11": "ada", "12": "alan"}), Pretender({"11": [graded(2.0)]}))
    newer = export_of(order, {"12": "alan", "15": "ada"})
    batch, _ = carry_out(newer, Pretender({"15": [graded(0.0)]}))
    assert [entry.id for entry in batch.entries] == ["12", "15"]
    assert batch.index.notes == (
        "Not in this export, no longer counted, since the same students have handed in again: 11.",
    )
    assert "\nada,,,ada,,0\n" in (order.out / "canvas.csv").read_text()
    assert (order.out / "results" / "11.json").is_file()


def test_what_has_no_result_and_is_not_in_a_later_export_is_left_out_and_told_of(order):
    broken = {"11": [Graded(fault="the judge died")]}
    carry_out(export_of(order, {"11": "ada", "12": "alan"}), Pretender(broken))
    batch, _ = carry_out(export_of(order, {"12": "alan"}), Pretender())
    assert [entry.id for entry in batch.entries] == ["12"]
    assert batch.index.notes == ("Not in this export, left out, having no result: 11.",)


def test_a_member_who_handed_in_again_alone_gets_the_newer_score(order):
    group = export_of(order, {"11": "ada", "12": "alan"})
    metadata = group.export / "submission_metadata.yml"
    partner = "  - :name: grace\n    :email: grace@example.edu\n"
    metadata.write_text(metadata.read_text().replace("12:\n", partner + "12:\n"))
    carry_out(group, Pretender({"11": [graded(2.0)]}))
    alone = export_of(order, {"15": "ada", "12": "alan"})
    batch, _ = carry_out(alone, Pretender({"15": [graded(0.0)]}))
    assert [entry.id for entry in batch.entries if entry.absent] == ["11"]
    canvas = {row[0]: row[-1] for row in csv.reader((order.out / "canvas.csv").open())}
    assert (canvas["ada"], canvas["grace"]) == ("0", "2")


def test_a_line_names_no_more_than_a_few_of_many():
    many = [Submitted(str(number), "there") for number in range(13)]
    assert ids(many) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 3 more"


def test_compare_names_whose_score_changed_and_by_which_test(order, tmp_path):
    first, _ = carry_out(order, Pretender())
    second, _ = carry_out(
        changed(order, out=tmp_path / "second"), Pretender({"alan": [graded(0.0)]})
    )
    (change,) = changes(first, second)
    assert (change.entry.id, change.before, change.after) == ("alan", "1", "0")
    assert change.reasons == (f"{EXERCISE} sizes: 1 of 2, now 0 of 2 (The size is wrong.)",)
    assert list(changes(first, first)) == []


def test_a_result_of_before_an_exercise_was_taken_out_stops_no_table(order):
    old = graded()
    old = msgspec.structs.replace(old, result=old.result.replace(EXERCISE.encode(), b"9.9"))
    carry_out(order, Pretender({"ada": [old]}))
    rows = {row["name"]: row for row in csv.DictReader((order.out / "grades.csv").open())}
    assert [(rows[name]["total"], rows[name][EXERCISE]) for name in NAMES] == [
        ("1", "0"),
        ("1", "1"),
        ("1", "1"),
    ]


@pytest.mark.parametrize(("answer", "scores"), ((graded(2.0), ["2"]), (Graded(fault="died"), [])))
def test_canvas_gets_the_last_submission_s_score_or_none(answer, scores, order):
    ada = "  :submitters:\n  - :name: Ada\n    :email: ada@example.edu\n"
    metadata = [
        f"{place}:\n{ada}  :created_at: 2026-01-0{day} 10:00:00.000000000 Z\n"
        for place, day in (("ada", 2), ("alan", 5), ("grace", 3))
    ]
    (order.export / "submission_metadata.yml").write_text("".join(metadata))
    carry_out(order, Pretender({"alan": [answer]}))
    canvas = list(csv.reader((order.out / "canvas.csv").open()))
    assert [row[-1] for row in canvas[2:]] == scores


def test_canvas_finds_the_columns_that_its_importer_looks_for(order):
    carry_out(export_of(order, {"11": "ada", "12": "alan"}), Pretender())
    header, points, *rows = csv.reader((order.out / "canvas.csv").open())
    assert "Student" in header[0] and "ID" in header[1]
    assert re.search(r"SIS\s+User\s+ID", header[2]) and re.search(r"SIS\s+Login\s+ID", header[3])
    assert "Section" in header[4] and header[5:] == [f"a1: {A1.title}"]
    assert "Points Possible" in points[0] and points[5] == "2"
    assert rows == [["ada", "", "", "ada", "", "1"], ["alan", "", "", "alan", "", "1"]]


def test_canvas_keeps_its_points_where_nothing_was_graded(order):
    """The importer takes a zero over, and leaves an empty cell alone."""
    broken = {name: [Graded(fault="dead")] for name in NAMES}
    carry_out(order, Pretender(broken))
    assert (order.out / "canvas.csv").read_text().splitlines()[1:] == ["    Points Possible,,,,,"]


def test_an_address_elsewhere_is_not_taken_for_the_login_of_another_student(order):
    students = {"11": "ada", "12": "alan", "13": "grace", "14": "other"}
    given = export_of(order, students)
    metadata = given.export / "submission_metadata.yml"
    metadata.write_text(metadata.read_text().replace("other@example.edu", "ada@Mail.example.com"))
    carry_out(given, Pretender())
    logins = {row[0]: row[3] for row in csv.reader((order.out / "canvas.csv").open())}
    assert (logins["ada"], logins["other"]) == ("ada", "ada@Mail.example.com")


def test_compare_counts_the_submissions_of_both(order, tmp_path):
    carry_out(order, Pretender())
    (tmp_path / "few" / "ada").mkdir(parents=True)
    few = changed(order, export=tmp_path / "few", out=tmp_path / "second")
    carry_out(few, Pretender())
    done = python("-m", "autograder", "compare", order.out, few.out, cwd=ROOT)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "3 of 3 differ.")


def test_a_spreadsheet_takes_no_name_for_a_formula(order):
    (order.export / "=HYPERLINK(1)").mkdir()
    carry_out(order, Pretender())
    assert "\n'=HYPERLINK(1)," in (order.out / "grades.csv").read_text()


def test_a_killed_writer_leaves_no_result_that_counts(order, monkeypatch):
    carry_out(order, Pretender())

    def killed(*given) -> None:
        raise KeyboardInterrupt

    before = read_batch(order.out).entries[0]
    state = batch_records.read_state(order.out, "ada")
    monkeypatch.setattr("os.replace", killed)
    with pytest.raises(KeyboardInterrupt):
        write_state(order.out, "ada", state, b"{}")
    assert before.status == "graded"
    assert read_batch(order.out).entries[0].status == "waiting"


def test_a_full_disk_stops_the_batch_in_a_sentence_and_it_goes_on_later(order, monkeypatch):
    write = batch_records.write_beside

    def full(file: Path, content: bytes) -> Path:
        if file.name in ("alan.json", "canvas.csv"):
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(file, content)

    why = f"{order.out} can't be written: No space left on device"
    with monkeypatch.context() as disk:
        disk.setattr(batch_records, "write_beside", full)
        batch, done = carry_out(order, Pretender())
        assert done.stopped == why
        assert [entry.status for entry in batch.entries] == ["graded", "waiting", "waiting"]
        disk.setattr(grade_tables, "write_atomically", full)
        with pytest.raises(CourseError, match=re.escape(why)):
            carry_out(order, Pretender())
    again = Pretender()
    carry_out(order, again)
    assert again.asked == ["alan", "grace"]


@pytest.mark.parametrize("full", (STATES, RESULTS))
def test_a_regrade_that_finds_no_room_leaves_the_older_result(full, order, monkeypatch):
    carry_out(order, Pretender())
    write = batch_records.write_beside

    def written(file: Path, content: bytes) -> Path:
        if file.parent.name == full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(file, content)

    monkeypatch.setattr(batch_records, "write_beside", written)
    batch, done = carry_out(changed(order, anew=True), Pretender({"ada": [graded(2.0)]}))
    assert "No space left" in done.stopped
    assert [(entry.status, entry.score) for entry in batch.entries] == [("graded", 1.0)] * 3


def test_results_of_another_zip_are_told_apart_from_those_of_this_one(order, tmp_path):
    first, _ = carry_out(order, Pretender())
    assert not any(entry.older for entry in first.entries)
    (tmp_path / "grader.zip").write_bytes(b"another zip")
    some = changed(order, only=("ada",))
    batch, done = carry_out(some, Pretender())
    assert [entry.outdated for entry in batch.entries] == [False, True, True]
    rows = {row["name"]: row for row in csv.DictReader((order.out / "grades.csv").open())}
    assert rows["ada"]["why"] == "" and "another zip" in rows["alan"]["why"]
    screen = io.StringIO()
    tell(Console(file=screen, width=200), batch, done)
    assert "2 results are of another zip, or of other settings" in screen.getvalue()
    assert "regrade" not in screen.getvalue()
    batch, done = carry_out(order, Pretender())
    assert (done.tally.graded, done.tally.kept) == (2, 1)
    assert not any(entry.outdated or entry.older for entry in batch.entries)


def test_compare_says_of_each_submission_whether_its_zip_was_another(order, tmp_path):
    second = changed(order, out=tmp_path / "second")
    carry_out(second, Pretender())
    (tmp_path / "grader.zip").write_bytes(b"another zip")
    (order.export / "grace" / "convolution.py").write_text("name = 'another'\n")
    new = {name: [graded(2.0)] for name in NAMES}
    whole, _ = carry_out(order, Pretender(new))
    part, _ = carry_out(changed(second, only=("ada",)), Pretender({"ada": [graded(0.0)]}))
    (ada, alan, grace) = changes(whole, part)
    assert "zip" not in ada.reasons[0]
    assert alan.reasons[0] == grace.reasons[0] == "graded with another zip, or with other settings"


def test_where_files_cannot_be_locked_a_batch_is_graded_all_the_same(order, monkeypatch):
    def flock(*given: int) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(batch_run.fcntl, "flock", flock)
    assert carry_out(order, Pretender())[1].tally.graded == 3


def test_a_regrade_whose_export_was_moved_says_what_to_do(order):
    carry_out(order, Pretender())
    order.export.rename(order.export.with_name("moved"))
    done = python("-m", "autograder", "regrade", order.out, cwd=ROOT)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert f"was graded from {order.export}, which is no longer there" in done.stderr
    assert f"batch a1 EXPORT --out {order.out}" in done.stderr


@pytest.mark.parametrize("anonymous", (False, True))
def test_what_is_printed_names_nobody_where_names_are_hidden(anonymous, order):
    (order.export / "notes of ada.txt").write_text("")
    fault = Graded(fault="ada.zip broke the judge")
    given = changed(order, anonymous=anonymous)
    screen = io.StringIO()
    tell(Console(file=screen, width=200), *carry_out(given, Pretender({"ada": [fault]})))
    assert ("ada" in screen.getvalue()) == (not anonymous)


def test_aliases_say_nothing_and_stay_the_same(order):
    first = [entry.alias for entry in carry_out(order, Pretender())[0].entries]
    assert sorted(first) == ["submission 1", "submission 2", "submission 3"]
    assert first == [entry.alias for entry in read_batch(Path(order.out)).entries]


@pytest.mark.parametrize(
    ("gpus", "seen"),
    (
        (0.5, ["4", "4", "6", "6"]),
        (0.4, ["4", "4", "6", "6"]),
        (1.0, ["4", "6"]),
        (2.0, ["4,6"]),
    ),
)
def test_slots_share_gpus_or_have_their_own(gpus, seen, monkeypatch):
    monkeypatch.setattr(local_engine, "available_megabytes", lambda: 10**9)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,6")
    monkeypatch.setattr(local_engine, "gpu_count", lambda: 2)
    monkeypatch.setattr(local_engine, "cores", lambda: 16)
    assert local_engine.slots_for(A1, 16, gpus) == len(seen)
    assert [local_engine.gpus_of(slot, gpus) for slot in range(1, len(seen) + 1)] == seen


def engine_on(*nodes: dict[str, float]) -> RayEngine:
    """An engine on a cluster of nodes with so many cores and bytes, without Ray."""
    engine = RayEngine.__new__(RayEngine)
    engine.jobs, engine.needs = None, {"CPU": 1.0, "memory": 2e9}
    told = [{"Alive": True, "Resources": node} for node in nodes]
    engine.ray = SimpleNamespace(nodes=lambda: told)
    return engine


def test_slots_of_a_cluster_are_those_that_its_nodes_have_room_for():
    small, large = {"CPU": 8.0, "memory": 5e9}, {"CPU": 4.0, "memory": 64e9}
    assert engine_on(small, large, {"memory": 64e9}).count_slots() == 2 + 4
    with pytest.raises(CourseError, match="No node of the Ray cluster has the 1907 MB"):
        engine_on({"CPU": 8.0, "memory": 1e9}, {"CPU": 8.0, "memory": 1.5e9}).check_nodes()
    with pytest.raises(CourseError, match="No node of the Ray cluster has room"):
        engine_on({"memory": 64e9}, {"CPU": 4.0, "memory": 1e9}).check_nodes()


def test_a_cluster_that_loses_its_nodes_is_waited_for_but_not_for_ever(order, monkeypatch):
    engine = engine_on({"CPU": 2.0, "memory": 64e9})
    engine.slots, engine.task = 2, SimpleNamespace(remote=lambda *given: object())
    engine.archive, engine.fixed = None, ()
    engine.looked = engine.had_room = time.monotonic()
    monkeypatch.setattr(ray_engine, "LOOK_EVERY", -1.0)
    waiting = Work(read_export(order.export), A1, "zip", Log(tmp(order)), [])
    engine.ray.nodes = lambda: [{"Alive": False, "Resources": {"CPU": 2.0, "memory": 64e9}}]
    engine.submit(waiting, {})
    assert engine.slots == 0 and not waiting.stopped
    engine.had_room -= ray_engine.ROOM_SECONDS + 1
    engine.submit(waiting, {})
    assert waiting.stopped == "for 10 minutes no node of the Ray cluster has had room"


def tmp(order: Order) -> Path:
    """A folder for a log."""
    folder = order.out.with_name("log")
    folder.mkdir(exist_ok=True)
    return folder


def test_there_are_no_more_slots_than_uids_for_them(monkeypatch):
    monkeypatch.setattr(local_engine, "available_megabytes", lambda: 10**9)
    monkeypatch.setattr(os, "getuid", lambda: 0)
    monkeypatch.setattr(local_engine, "cores", lambda: 256)
    assert local_engine.slots_for(A1, 256, 0.0) == COUNT >= 128


def test_slots_fit_into_the_memory(monkeypatch):
    each = judge_settings.JUDGE_MB + A1.limits.memory_mb
    monkeypatch.setattr(local_engine, "available_megabytes", lambda: 3 * each + 5)
    monkeypatch.setattr(local_engine, "cores", lambda: 8)
    assert [local_engine.slots_for(A1, jobs, 0.0) for jobs in (1, 3, 8)] == [1, 3, 3]
    monkeypatch.setattr(local_engine, "available_megabytes", lambda: 10)
    assert local_engine.slots_for(A1, 8, 0.0) == 1


def test_there_are_no_more_slots_than_cores(monkeypatch):
    """Limits of time are told by a clock: with half a core, right code would miss them."""
    monkeypatch.setattr(local_engine, "available_megabytes", lambda: 10**9)
    monkeypatch.setattr(local_engine, "cores", lambda: 4)
    assert [local_engine.slots_for(A1, jobs, 0.0) for jobs in (None, 3, 64)] == [4, 3, 4]


def test_whatever_happens_to_a_judge_is_a_fault_and_the_slot_goes_on(order, monkeypatch):
    class Exhausted:
        def exchange(self, question: bytes) -> bytes:
            raise MemoryError

        def close(self) -> None:
            pass

        def last_words(self) -> str:
            return ""

    monkeypatch.setattr(local_engine, "unpack", lambda archive, folder: None)
    monkeypatch.setattr(local_engine.LocalEngine, "start_judge", lambda self, slot: Exhausted())
    with local_engine.LocalEngine(A1, order.export, 1) as engine:
        attempt = Attempt(Submitted("ada", "there"), 1, "", False, "", b"", 0.0)
        assert engine.grade(1, attempt).fault == "the judge ended (MemoryError)"


def test_what_a_dying_judge_says_is_told(tmp_path):
    (tmp_path / "autograder" / "grading").mkdir(parents=True)
    (tmp_path / "autograder" / "grading" / "warm.py").write_text("raise SystemExit('no salt here')")
    judge = ClassJudge(tmp_path, "a1")
    with pytest.raises((ChannelClosed, OSError)):
        judge.exchange(b"")
    judge.close()
    assert judge.last_words() == "no salt here"


def test_the_display_tells_how_far_it_is_and_what_each_slot_does():
    tally = Tally(300, kept=20, graded=100, failed=2, retries=3)
    tally.began = time.monotonic() - 60
    attempt = Attempt(Submitted("215001", "there"), 2, "", False, "", b"", time.monotonic() - 3)
    state = SimpleNamespace(tally=tally, running={1: attempt}, stopped="")
    console = Console(width=100, file=io.StringIO(), record=True)
    console.print(picture(state, SimpleNamespace(slots=2)))
    bar, line, first, second = console.export_text().splitlines()
    assert set(bar.strip()) <= {*"━╸╺ "}
    assert line.strip() == (
        "122 of 300 done, 20 of them before, 2 failed, 3 tried again, 100 per minute, "
        "1 min 47 s left"
    )
    assert first.split() == ["slot", "1", "215001", "(attempt", "2)", "3", "s"]
    assert second.split() == ["slot", "2", "idle"]
    state.stopped = "by Ctrl-C"
    console.print(picture(state, SimpleNamespace(slots=2)))
    assert console.export_text().startswith("Stopping.")


def test_without_a_terminal_there_are_plain_lines(monkeypatch):
    monkeypatch.setattr("autograder.commands.progress.LINE_EVERY", 0.0)
    console = Console(width=100, file=io.StringIO())
    with following(console) as follow:
        follow(SimpleNamespace(tally=Tally(3, graded=1)), SimpleNamespace(slots=1))()
    ready, line, *_ = console.file.getvalue().splitlines()
    assert ready.startswith("getting ready") and line.startswith("1 of 3 done, ")


def test_an_address_where_nobody_listens_is_told_at_once():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{held.getsockname()[1]}"
        with pytest.raises(CourseError, match=f"There is no Ray cluster at {address}: "):
            check_somebody_listens(address)
        held.listen()
        check_somebody_listens(address)
    check_somebody_listens("auto")
