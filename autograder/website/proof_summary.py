"""Writes the site's page about the proofs: figures from the ledgers, without names or code."""

from autograder.proving.ledgers.proof_ledger import Ledger, read_ledger
from autograder.proving.proof_findings import MistakeRow, Proof
from common.assignment import Assignment

HEAD = """# Proof of the graders

What `make verify` found. [The proof](docs/proof.md) explains it. `dist/proof.html`, which the
command writes, has the details, with code that students must not see.

"""
COLUMNS = (
    "assignment | proved on | tests | correct versions, all with full marks | "
    "mistakes, each caught | mutants killed"
)


def proof_summary(assignments: list[Assignment]) -> str:
    """The page: a row for each assignment, and one table by exercise for each."""
    ledgers = [read_ledger(assignment) for assignment in assignments]
    rows = [row(COLUMNS.split(" | ")), row(["---"] * len(COLUMNS.split(" | ")))]
    rows += [row(overview(ledger)) for ledger in ledgers]
    parts = [HEAD + "\n".join(rows)]
    for ledger in ledgers:
        parts.append(f"## {ledger.proof.title}\n\n" + "\n".join(by_exercise(ledger.proof)))
    return "\n\n".join(parts) + "\n"


def overview(ledger: Ledger) -> list[str]:
    """The row of one assignment."""
    proof = ledger.proof
    correct = [scored for scored in proof.scored if scored.name != "stub"]
    killed = f"{proof.killed:.1%} of {proof.mutants - proof.equivalent}"
    counts = map(str, (proof.tests, len(correct), len(proof.mistakes)))
    return [proof.title, ledger.date, *counts, killed]


def by_exercise(proof: Proof) -> list[str]:
    """How many known mistakes each exercise has, and who notices them."""
    lines = [row(["exercise", "mistakes", "caught by public tests", "by hidden tests only"])]
    lines.append(row(["---"] * 4))
    for number in proof.exercises:
        mistakes = [mistake for mistake in proof.mistakes if mistake.named[:1] == [number]]
        public = sum(bool(mistake.public) for mistake in mistakes)
        counts = (len(mistakes), public, hidden_only(mistakes))
        lines.append(row([number, *map(str, counts)]))
    return lines


def hidden_only(mistakes: list[MistakeRow]) -> int:
    """How many mistakes no public test notices."""
    return sum(bool(mistake.hidden) and not mistake.public for mistake in mistakes)


def row(cells: list[str]) -> str:
    """A row of a Markdown table."""
    return f"| {' | '.join(cells)} |"
