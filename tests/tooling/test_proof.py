"""The proof itself, with one salt: `make verify` has twenty, and the mutants."""

import pytest

from autograder.proving.case import Scope
from autograder.proving.mistakes import load_mistakes
from autograder.proving.recording import fresh_hints, public_file
from autograder.proving.sightings import differences
from autograder.proving.verify import verdicts_of, verify
from common.assignment import load_all
from common.evidence import Evidence
from common.hints import Fingerprint, HintFile, Hints, hint_bytes, read_hints, same

EACH = pytest.mark.parametrize("proved", load_all(), ids=lambda entry: entry.short, indirect=True)


@pytest.fixture(scope="module")
def proved(request, tmp_path_factory):
    """An assignment, its proof, and all that was graded for it."""
    dist = tmp_path_factory.mktemp("dist")
    proof, evidence = verify(
        request.param, Scope(seeds=1, mutants=False), lambda done, total: None, dist
    )
    return request.param, proof, evidence


@EACH
def test_the_graders_reward_right_code_and_only_right_code(proved):
    _, proof, _ = proved
    assert proof.all_problems == []
    assert {row.name: row.lowest for row in proof.scored if row.name != "stub"} == {
        row.name: proof.points for row in proof.scored if row.name != "stub"
    }
    assert proof.gradings > 2 * len(proof.mistakes)


@EACH
def test_the_committed_hints_are_current(proved):
    assignment, _, evidence = proved
    stored = read_hints(public_file(assignment))
    assert differences(stored, fresh_hints(assignment, evidence, hidden=False)) == []


@EACH
def test_the_hint_of_every_mistake_appears(proved, tmp_path):
    """Each mistake, seen again, shows its own hint in one of the tests that it fails at least."""
    assignment, _, evidence = proved
    for hidden in (False, True):
        content = fresh_hints(assignment, evidence, hidden)
        (tmp_path / f"{hidden}.hints").write_bytes(hint_bytes(content))
    hints = Hints(tmp_path / f"{hidden}.hints" for hidden in (False, True))
    for mistake in load_mistakes(assignment):
        verdicts = verdicts_of(evidence.replies, f"mistake {mistake.name}:")
        shown = {found(hints, v.test, v.check, v.seen) for v in verdicts if v.seen and not v.passed}
        assert mistake.hint in shown, f"{mistake.name} shows {shown}"


@EACH
def test_right_and_unwritten_code_never_get_a_hint(proved):
    _, _, evidence = proved
    for verdict in verdicts_of(evidence.replies, "reference", "alternative", "stub"):
        assert verdict.hint == ""


def found(hints: Hints, test: str, check: int, seen: Fingerprint) -> str:
    """The hint for a fingerprint."""
    known = hints.sightings.get((test, check), [])
    matching = [entry.mistake for entry in known if same(seen, entry.seen)]
    return hints.hints[min(matching, key=hints.rank.__getitem__)] if matching else ""


def test_an_empty_hint_file_has_no_hint(tmp_path):
    (tmp_path / "public.hints").write_bytes(hint_bytes(HintFile({}, [])))
    hints = Hints([tmp_path / "public.hints", tmp_path / "missing.hints"])
    assert hints.find("test_a", Evidence(1, None, "said")) == ""
