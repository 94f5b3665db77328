"""Renders proofs as dist/proof.html, one self-contained page."""

from collections.abc import Sequence
from pathlib import Path

from autograder.authoring.html_pages import render_page
from autograder.proving.hostile.attack_findings import AttackRow
from autograder.proving.proof_findings import Proof

TEMPLATE = Path(__file__).parent / "proof_page.html"


def proof_page(proofs: list[Proof], attacks: Sequence[AttackRow] = ()) -> str:
    """The whole page."""
    return render_page(TEMPLATE, proofs=proofs, attacks=attacks)
