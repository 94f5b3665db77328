"""Runs a batch (`make batch`) from export to report: locks its folder, resumes if interrupted."""

import difflib
import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from autograder.batch.batch_records import (
    INDEX,
    RESULTS,
    STATES,
    Batch,
    Index,
    Submitted,
    graded_state,
    read_batch,
    write_index,
    writing,
)
from autograder.batch.engines.driver_scratch import clear_leftovers
from autograder.batch.engines.engine_protocol import Engine
from autograder.batch.event_log import LOG, Log
from autograder.batch.input.export_reader import Export, read_export
from autograder.batch.input.previous_export import PreviousExport, missing_from
from autograder.batch.output.grade_tables import write_tables
from autograder.batch.output.html_report import write_page
from autograder.batch.work_queue import Work
from autograder.packaging.zip_build import build
from autograder.semester import how_to_restore, label_of, read_semester
from common.assignment import Assignment
from common.errors import CourseError

LOCK = ".lock"
BY_HAND = "by Ctrl-C or a signal"


@dataclass(frozen=True)
class Order:
    """What to grade, and into which folder."""

    assignment: Assignment
    export: Path
    out: Path
    anonymous: bool = False
    gpus: float = 0.0  # for each submission
    only: tuple[str, ...] = ()  # ids; none: all
    failed: bool = False  # whether to grade only what has no result, or no newer one
    regrade: bool = False  # whether to grade again what has one


@contextmanager
def opened(out: Path) -> Iterator[Log]:
    """The folder of a batch, for one run at a time."""
    if out.exists() and not out.is_dir():
        raise CourseError(f"{out} is a file: --out must be a folder.")
    if out.is_dir() and holds_others(out):
        raise CourseError(f"{out} is not empty and not a batch: choose another folder.")
    with writing(out):
        out.mkdir(parents=True, mode=0o700, exist_ok=True)  # names and work of a whole class
        # Before all else: a run that is killed before it has an index leaves a folder of ours.
        lock = os.open(out / LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        for name in (STATES, RESULTS):
            (out / name).mkdir(exist_ok=True)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CourseError(f"Another batch is being graded into {out}.") from None
        except OSError:  # file systems of some clusters know no locks
            pass
        log = Log(out)
        try:
            yield log
        finally:
            log.close()
    finally:
        os.close(lock)


def holds_others(out: Path) -> bool:
    """Whether a folder holds what no batch has left there, not even one killed at its start."""
    names = {item.name for item in out.iterdir()}
    begun = LOCK in names and all(
        name in (LOCK, LOG, STATES, RESULTS) or name.startswith(f"{INDEX}.") for name in names
    )
    return bool(names) and INDEX not in names and not begun


def new_index(order: Order, export: Export, archive: Path, previous: PreviousExport) -> Index:
    """What batch.json is to say."""
    return Index(
        assignment=order.assignment.name,
        title=order.assignment.title,
        export=str(order.export.resolve()),
        grader=hashlib.sha256(archive.read_bytes()).hexdigest(),
        salt=read_semester().fingerprint,
        submissions=(*export.submissions, *previous.kept),
        anonymous=order.anonymous,
        gpus=order.gpus,
        notes=(*export.notes, *previous.notes),
    )


def read_previous_export(order: Order, export: Export) -> PreviousExport:
    """What earlier runs leave to this one.

    Refuses to mix two assignments or two terms in a folder, or to replace one class by another.
    """
    if not (order.out / INDEX).is_file():
        return PreviousExport()
    there = read_batch(order.out).index
    if there.assignment != order.assignment.name:
        raise CourseError(
            f"{order.out} holds a batch of {there.assignment}: choose another folder."
        )
    semester = read_semester()
    if there.salt != semester.fingerprint:
        raise CourseError(
            f"{order.out} was graded under {label_of(there.salt)}, and this checkout is set to "
            f"{semester.label}, with other inputs. To restore the earlier term, "
            f"{how_to_restore(there.salt, semester)}; or choose another folder."
        )
    known = {one.id for one in there.submissions}
    if known.isdisjoint(one.id for one in export.submissions):
        raise CourseError(
            f"{order.out} holds a batch of {there.export}, and none of its submissions is in "
            f"{order.export}: choose another folder."
        )
    return missing_from(export, there, order.out)


def wrong_assignment_warning(export: Export, assignment: Assignment) -> str:
    """Whether this may be another assignment's export: a sentence, or "".

    In most exports the first submission decides, so that no more are read.
    """
    for one in export.submissions:
        if one.why:  # it isn't there
            continue
        try:
            files = export.read_submission(one, assignment).files
        except Exception:  # whoever grades it will say what is wrong with it
            return ""
        if not files.keys().isdisjoint(assignment.files):
            return ""
    wanted = " and no ".join(assignment.files)
    short = assignment.short
    return f"No submission in {export.path} holds a {wanted}: is it an export of {short}?"


def chosen(order: Order, index: Index) -> Sequence[Submitted]:
    """The submissions to grade."""
    known = {one.id: one for one in index.submissions if not one.absent}
    picked = [find(name, known, index) for name in dict.fromkeys(order.only)]
    picked = picked or list(known.values())
    if not order.failed:
        return picked
    return [one for one in picked if has_failed(order.out, one.id)]


def find(name: str, known: dict[str, Submitted], index: Index) -> Submitted:
    """The submission that somebody means, by its id, its folder or a student's name."""
    if name in known:
        return known[name]
    meant = [
        one
        for one in known.values()
        if name == one.place or any(name in (s.name, s.email, s.sid) for s in one.students)
    ]
    if len(meant) == 1:
        return meant[0]
    if meant:
        several = ", ".join(one.id for one in meant)
        raise CourseError(f"{name} is in several submissions: {several}. Give an id.")
    near = difflib.get_close_matches(name, known, n=1)
    hint = f" The nearest id is {near[0]}." if near else ""
    raise CourseError(f"There is no submission {name} in {index.export}.{hint}")


def has_failed(out: Path, identifier: str) -> bool:
    """Whether a submission has no result, or could not be graded again."""
    state = graded_state(out, identifier)
    return state is None or bool(state.again)


def run_batch(
    order: Order,
    start_engine: Callable[[Path], Engine],
    show_progress: Callable[[Work], None],
) -> tuple[Batch, Work]:
    """Grade; the batch as it is afterwards, and what was done. Tables and report are up to date.

    start_engine: given the assignment's zip. show_progress: called now and then.
    """
    if order.out.resolve().is_relative_to(order.export.resolve()):
        raise CourseError(f"{order.out} lies in {order.export}, where it would be a submission.")
    export = read_export(order.export)
    with opened(order.out) as log:
        previous = read_previous_export(order, export)
        archive = build(order.assignment).autograder
        index = new_index(order, export, archive, previous)
        picked = chosen(order, index)
        warning = wrong_assignment_warning(export, order.assignment)
        if warning:
            index = msgspec.structs.replace(index, notes=(warning, *index.notes))
        work = Work(export, order.assignment, index.settings, log, picked, order.regrade)
        work.warning = warning
        clear_leftovers()
        engine = start_engine(archive)  # which may refuse; nothing is changed before
        try:
            with writing(order.out):
                write_index(order.out, index)
                log.add("started", submissions=work.progress.total, notes=list(index.notes))
        except CourseError:
            engine.close()
            raise
        try:
            engine.run(work, lambda: show_progress(work))
        except KeyboardInterrupt:
            work.stop(BY_HAND)
            show_progress(work)
        finally:
            engine.close()
            with writing(order.out):
                log.add(
                    "ended", graded=work.progress.graded, kept=work.progress.kept, why=work.stopped
                )
                batch = read_batch(order.out)
                write_tables(batch)
                write_page(batch)
    return batch, work
