"""The bookkeeping of a batch, with engines that only pretend to grade."""

import csv
import io
import json
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from rich.console import Console

from autograder.batch import local, run, work
from autograder.batch.comparison import changes
from autograder.batch.records import Batch, Submitted, read_batch, write_state
from autograder.batch.run import Order, run_batch
from autograder.batch.work import Attempt, Tally, Work
from autograder.commands.following import following, picture
from autograder.grading.channel import ChannelClosed
from autograder.grading.intake import take
from autograder.grading.processes import ClassJudge
from autograder.grading.warm import Graded, HandedIn
from common.assignment import load_assignment
from common.errors import CourseError

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
        self.questions: dict[str, bytes] = {}

    def run(self, work: Work, tick: Callable[[], None]) -> None:
        while (attempt := work.take(1)) is not None:
            self.asked.append(attempt.id)
            self.questions[attempt.id] = attempt.question
            answers = self.answers.get(attempt.id) or [graded()]
            work.finish(1, attempt, answers.pop(0) if len(answers) > 1 else answers[0])
            self.after()

    def close(self) -> None:
        pass


@pytest.fixture
def order(tmp_path, monkeypatch) -> Order:
    """Three submissions, and a batch to come; without waiting between attempts, or for a zip."""
    monkeypatch.setattr(work, "PAUSES", (0.01, 0.02, 0.03))
    (tmp_path / "grader.zip").write_bytes(b"a zip")
    built = SimpleNamespace(autograder=tmp_path / "grader.zip")
    monkeypatch.setattr(run, "build", lambda assignment: built)
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
    "harm", ("the state is gone", "the result is gone", "the state is damaged")
)
def test_what_was_not_written_to_its_end_is_graded_again(harm, order):
    carry_out(order, Pretender())
    if harm == "the result is gone":
        (order.out / "results" / "ada.json").unlink()
    elif harm == "the state is gone":
        (order.out / "state" / "ada.json").unlink()
    else:
        (order.out / "state" / "ada.json").write_text('{"key": "')
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


def test_why_a_file_was_not_taken_travels_with_the_submission(order):
    """Tests tell it in place of "it is missing": a batch must say what grading alone says."""
    (order.export / "ada" / "convolution.py").rename(order.export / "ada" / "conv.py")
    engine = Pretender()
    carry_out(order, engine)
    sent = msgspec.msgpack.decode(engine.questions["ada"], type=HandedIn)
    alone = take(order.export / "ada", A1)
    assert alone.reasons == {"convolution.py": "convolution.py is missing. Found: conv.py."}
    assert (sent.files, sent.notes, sent.reasons) == (alone.files, alone.notes, alone.reasons)


def test_what_no_submission_could_survive_stops_the_batch_at_once(order):
    engine = Pretender({name: [Graded(fault="no protection", hopeless=True)] for name in NAMES})
    batch, done = carry_out(order, engine)
    assert len(engine.asked) == 1 and done.stopped == "no protection"
    assert {entry.status for entry in batch.entries} == {"waiting"}


def test_a_grader_that_never_works_is_given_up(order, monkeypatch):
    monkeypatch.setattr(work, "IN_A_ROW", 2)
    batch, done = carry_out(order, Pretender({name: [Graded(fault="dead")] for name in NAMES}))
    assert "in a row could not be graded, the last because: dead" in done.stopped
    assert [entry.status for entry in batch.entries].count("failed") == 2


def test_an_interrupt_leaves_tables_and_a_batch_that_goes_on(order):
    def interrupt() -> None:
        raise KeyboardInterrupt

    batch, done = carry_out(order, Pretender(after=interrupt))
    assert done.stopped == "stopped by the user"
    assert [entry.status for entry in batch.entries] == ["graded", "waiting", "waiting"]
    assert (order.out / "grades.csv").is_file()
    again = Pretender()
    carry_out(order, again)
    assert again.asked == ["alan", "grace"]


def test_only_the_named_are_graded_and_again_if_asked(order):
    carry_out(order, Pretender())
    again = Pretender({"grace": [graded(0.0)]})
    batch, _ = carry_out(changed(order, only=("grace",), anew=True), again)
    assert again.asked == ["grace"] and batch.entries[2].score == 0.0
    with pytest.raises(CourseError, match="no submission nobody"):
        carry_out(changed(order, only=("nobody",)), again)


def test_a_folder_holds_one_batch_of_one_assignment_at_a_time(order, tmp_path):
    carry_out(order, Pretender())
    with pytest.raises(CourseError, match="holds a batch of a1_convolution"):
        carry_out(changed(order, assignment=load_assignment("a2")), Pretender())
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("mine")
    with pytest.raises(CourseError, match="not empty, and holds no batch"):
        carry_out(changed(order, out=tmp_path / "full"), Pretender())
    with run.opened(order.out), pytest.raises(CourseError, match="Another batch"):
        carry_out(order, Pretender())


def test_students_who_left_the_export_leave_the_results(order):
    carry_out(order, Pretender())
    (order.export / "ada" / "convolution.py").unlink()
    (order.export / "ada").rmdir()
    carry_out(order, Pretender())
    assert sorted(p.name for p in (order.out / "results").iterdir()) == ["alan.json", "grace.json"]


def test_compare_names_whose_score_changed_and_by_which_test(order, tmp_path):
    first, _ = carry_out(order, Pretender())
    second, _ = carry_out(
        changed(order, out=tmp_path / "second"), Pretender({"alan": [graded(0.0)]})
    )
    (change,) = changes(first, second)
    assert (change.entry.id, change.before, change.after) == ("alan", "1", "0")
    assert change.reasons == (f"{EXERCISE} sizes: 1 of 2, now 0 of 2 (The size is wrong.)",)
    assert list(changes(first, first)) == []


def test_a_spreadsheet_takes_no_name_for_a_formula(order):
    (order.export / "=HYPERLINK(1)").mkdir()
    carry_out(order, Pretender())
    assert "\n'=HYPERLINK(1)," in (order.out / "grades.csv").read_text()


def test_a_killed_writer_leaves_no_result_that_counts(order, monkeypatch):
    carry_out(order, Pretender())

    def killed(*given) -> None:
        raise KeyboardInterrupt

    before = read_batch(order.out).entries[0]
    state = work.read_state(order.out, "ada")
    monkeypatch.setattr("os.replace", killed)
    with pytest.raises(KeyboardInterrupt):
        write_state(order.out, "ada", state, b"{}")
    assert before.status == "graded"
    assert read_batch(order.out).entries[0].status == "waiting"


def test_aliases_say_nothing_and_stay_the_same(order):
    first = [entry.alias for entry in carry_out(order, Pretender())[0].entries]
    assert sorted(first) == ["submission 1", "submission 2", "submission 3"]
    assert first == [entry.alias for entry in read_batch(Path(order.out)).entries]


@pytest.mark.parametrize(
    ("gpus", "seen"),
    ((0.5, ["4", "4", "6", "6"]), (1.0, ["4", "6"]), (2.0, ["4,6"])),
)
def test_slots_share_gpus_or_have_their_own(gpus, seen, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,6")
    assert [local.gpus_of(slot, gpus) for slot in range(1, len(seen) + 1)] == seen


def test_slots_fit_into_the_memory(monkeypatch):
    each = local.JUDGE_MB + A1.limits.memory_mb
    monkeypatch.setattr(local, "available_megabytes", lambda: 3 * each + 5)
    assert [local.slots_for(A1, jobs, 0.0) for jobs in (1, 3, 8)] == [1, 3, 3]
    monkeypatch.setattr(local, "available_megabytes", lambda: 10)
    assert local.slots_for(A1, 8, 0.0) == 1


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
    attempt = Attempt(Submitted("215001", "there"), 2, "", "", b"", time.monotonic() - 3)
    state = SimpleNamespace(tally=tally, running={1: attempt})
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


def test_without_a_terminal_there_are_plain_lines(monkeypatch):
    monkeypatch.setattr("autograder.commands.progress.LINE_EVERY", 0.0)
    console = Console(width=100, file=io.StringIO())
    with following(console) as follow:
        follow(SimpleNamespace(tally=Tally(3, graded=1)), SimpleNamespace(slots=1))()
    assert console.file.getvalue().startswith("1 of 3 done, ")
