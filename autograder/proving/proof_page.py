"""Renders proofs as dist/proof.html, one self-contained page."""

from html import escape

from autograder.proving.margins import Margin
from autograder.proving.proof_findings import MistakeRow, Proof, Timing

STYLE = """
:root { color-scheme: light dark; --good: #0a7f55; --bad: #c0392b; --line: #8884; --soft: #8881; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 70rem; padding: 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.25rem; margin-top: 2.5rem; } h3 { font-size: 1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .6rem; text-align: left; }
td.n, th.n { text-align: right; } td.c { text-align: center; min-width: 2.6rem; }
.good { color: var(--good); } .bad { color: var(--bad); font-weight: 600; }
td.hit { background: color-mix(in srgb, var(--good) 22%, transparent); }
td.miss, td.stray { background: color-mix(in srgb, var(--bad) 30%, transparent); }
.facts { display: flex; flex-wrap: wrap; gap: .6rem; padding: 0; list-style: none; }
.facts li { background: var(--soft); border-radius: .5rem; padding: .5rem .8rem; }
.facts b { display: block; font-size: 1.25rem; }
pre { background: var(--soft); overflow-x: auto; padding: .5rem; margin: .3rem 0; }
details { margin: .4rem 0; } summary { cursor: pointer; } small { opacity: .75; }
"""


def proof_page(proofs: list[Proof]) -> str:
    """The whole page."""
    problems = sum(len(proof.all_problems) for proof in proofs)
    if problems:
        verdict = f'<p class="bad">{problems} problems: the graders are not proved.</p>'
    elif all(proof.whole for proof in proofs):
        verdict = (
            '<p class="good">The graders hold: right code gets all points, wrong code not.</p>'
        )
    else:
        verdict = "<p>No problem was found, but only a part of the proof was run.</p>"
    body = "".join(assignment_part(proof) for proof in proofs)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>conv2gpt: proof</title><style>{STYLE}</style></head><body>"
        f"<h1>conv2gpt: proof of the graders</h1>{verdict}{body}</body></html>\n"
    )


def assignment_part(proof: Proof) -> str:
    """Everything about one assignment."""
    return "".join(
        (
            f"<h2>{escape(proof.assignment)}: {escape(proof.title)}</h2>",
            facts(proof),
            problem_list(proof),
            scored_table(proof),
            mistake_matrix(proof),
            survivor_list(proof),
            margin_table(proof),
            timing_tables(proof),
        )
    )


def facts(proof: Proof) -> str:
    """The figures worth seeing first."""
    caught = sum(not row.problems for row in proof.mistakes)
    mutants = f"{proof.killed:.1%}" if proof.mutants else "not run"
    unrun = f", {proof.not_run:g} of them not run here: no GPU" if proof.not_run else ""
    entries = [
        (f"{proof.tests}", f"tests, {proof.points:g} points{unrun}"),
        (f"{proof.scored[0].salts}", "salts: sets of hidden inputs, tried on all right code"),
        (f"{caught} of {len(proof.mistakes)}", "mistakes cost what they must"),
        (
            mutants,
            f"of {proof.mutants - proof.equivalent} mutants noticed, "
            f"{proof.equivalent} equivalent ones left out",
        ),
    ]
    if proof.effort:
        seconds, gradings = f"{proof.effort.seconds:.0f} s", proof.effort.gradings
        entries.append((seconds, f"{gradings} gradings, {proof.effort.remembered} remembered"))
    items = "".join(f"<li><b>{escape(big)}</b>{escape(small)}</li>" for big, small in entries)
    return f'<ul class="facts">{items}</ul>'


def problem_list(proof: Proof) -> str:
    """What is wrong, if anything."""
    if not proof.all_problems:
        return ""
    items = "".join(f"<li>{escape(problem)}</li>" for problem in proof.all_problems)
    return f'<h3 class="bad">Problems</h3><ul>{items}</ul>'


def scored_table(proof: Proof) -> str:
    """The reference, the alternatives and the stub."""
    rows = "".join(
        f"<tr><td>{escape(row.name)}</td>{number(row.tests)}{number(row.salts)}"
        f"{number(row.lowest)}{number(row.highest)}</tr>"
        for row in proof.scored
    )
    head = heads("version", "tests", "salts", "lowest score", "highest score")
    return f'<h3>Right code, and none</h3><div class="wide"><table>{head}{rows}</table></div>'


def mistake_matrix(proof: Proof) -> str:
    """Mistakes by exercises: the points that each one costs."""
    head = "".join(f"<th>{escape(number)}</th>" for number in proof.exercises)
    rows = "".join(mistake_row(row, proof.exercises) for row in proof.mistakes)
    return (
        "<h3>Mistakes and what they cost</h3><p><small>Points lost in each exercise. Green: it "
        "must cost something there, and does. Red: it should and doesn't, or shouldn't and does."
        f'</small></p><div class="wide"><table><tr><th>mistake</th>{head}'
        f'<th class="n">public tests</th></tr>{rows}</table></div>'
    )


def mistake_row(row: MistakeRow, exercises: list[str]) -> str:
    """One line of the matrix."""
    cells = []
    for exercise in exercises:
        named, lost = exercise in row.named, row.lost.get(exercise, 0)
        kind = "hit" if named and lost else "miss" if named else "stray" if lost else ""
        cells.append(f'<td class="c {kind}">{f"{lost:g}" if lost or named else ""}</td>')
    name = f"<details><summary>{escape(row.name)}</summary>{escape(row.hint)}</details>"
    return f"<tr><td>{name}</td>{''.join(cells)}{number(len(row.public))}</tr>"


def survivor_list(proof: Proof) -> str:
    """The mutants that no test noticed."""
    if not proof.mutants:
        return "<h3>Mutants</h3><p>Not run.</p>"
    if not proof.survivors:
        return f"<h3>Mutants</h3><p>All {proof.mutants} were noticed.</p>"
    items = "".join(
        f"<li>{escape(entry.file)}, line {entry.line}"
        f"{'' if entry.reason else ' <span class=bad>unexplained</span>'}"
        f"<pre>{escape(entry.change)}</pre><small>{escape(entry.reason)}</small></li>"
        for entry in proof.survivors
    )
    count = f"{len(proof.survivors)} of {proof.mutants}, {proof.equivalent} of them equivalent"
    return f"<h3>Mutants that no test noticed</h3><p>{count}.</p><ul>{items}</ul>"


def margin_table(proof: Proof) -> str:
    """Noise, tolerance and the nearest mistake of each test."""
    rows = "".join(
        f"<tr><td>{escape(margin.test)}</td>{number(f'{margin.noise:.0e}')}"
        f"{number(f'{margin.tolerance:.0e}')}"
        f"{number('-' if margin.nearest is None else f'{margin.nearest:.0e}')}"
        f'<td class="{"bad" if margin.problem else "good"}">'
        f"{margin_word(margin)}</td></tr>"
        for margin in proof.margins
    )
    head = heads("test", "error of right code", "tolerance", "nearest wrong code", "")
    return (
        "<h3>Margins</h3><details><summary>Relative errors: each tolerance must lie ten times "
        "above the first and below a tenth of the last</summary>"
        f'<div class="wide"><table>{head}{rows}'
        "</table></div></details>"
    )


def timing_tables(proof: Proof) -> str:
    """How long gradings took, and which tests take the reference longest, if graded just now."""
    if not proof.effort:
        return ""

    def rows(timings: list[Timing]) -> str:
        return "".join(
            f"<tr><td>{escape(entry.what)}</td>{number(entry.times)}"
            f"{number(f'{entry.total:.1f}')}{number(f'{entry.longest:.2f}')}</tr>"
            for entry in timings
        )

    kinds = heads("what was graded", "gradings", "seconds in all", "longest")
    tests = heads("slowest tests on the reference", "runs", "seconds in all", "longest")
    return (
        "<h3>Timings</h3>"
        f'<div class="wide"><table>{kinds}{rows(proof.effort.timings)}</table></div>'
        f'<div class="wide"><table>{tests}{rows(proof.effort.slowest)}</table></div>'
    )


def margin_word(margin: Margin) -> str:
    """What is to be said of a margin."""
    return "ok" if not margin.problem else "unknown" if margin.nearest is None else "too near"


def heads(*names: str) -> str:
    """A row of column heads; all but the first are for numbers."""
    first, *rest = names
    cells = "".join(f'<th class="n">{escape(name)}</th>' for name in rest)
    return f"<tr><th>{escape(first)}</th>{cells}</tr>"


def number(value: object) -> str:
    """A cell with a number."""
    shown = f"{value:g}" if isinstance(value, float) else str(value)
    return f'<td class="n">{escape(shown)}</td>'
