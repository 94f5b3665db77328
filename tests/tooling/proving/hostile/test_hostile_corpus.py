"""No hostile submission gets points, secrets or time that it has not earned, or leaves anything."""

import ast
import os
import subprocess
import sys
import threading

import pytest

from autograder.proving.hostile import leftover_traces
from autograder.proving.hostile.attack_findings import judge_attack
from autograder.proving.hostile.corpus_gradings import CorpusGradings
from autograder.proving.hostile.fuzzed_submissions import SEED, SUBMISSIONS, FuzzedSubmission
from autograder.proving.hostile.hostile_corpus import read_corpus
from autograder.proving.hostile.leftover_traces import survivors
from tests.tooling.grading.test_results import check_content
from tests.tooling.sampling import sample

CORPUS = {entry.name: entry for entry in read_corpus()}
CHOSEN = sample("attacks", list(CORPUS), 0, kind=lambda name: CORPUS[name].row)  # one of each kind
FUZZED = sample("fuzzed submissions", [f"fuzzed/{SEED}-{n}" for n in range(1, SUBMISSIONS + 1)], 6)
ATTACKS = CORPUS | {name: FuzzedSubmission(SEED, int(name.rpartition("-")[2])) for name in FUZZED}
# What each kind of attack must have at least one entry for; the names are those of the files.
ITEMS = {
    "results": "at_import in_a_call at_exit later",
    "run_autograder": "append",
    "reading": "source hidden_tests metadata",
    "inspection": "frames garbage modules",
    "patching": "numpy_testing torch_allclose pytest_module unittest_module clock",
    "lying": "equal_to_all array_subclass tensor_subclass array_protocol torch_function reduce "
    "rare_tensors",
    "endings": "os_exit sys_exit keyboard_interrupt signals stops_itself",
    "waiting": "endless_loop sleep deadlock recursion slow_import out_of_band out_of_band_lab "
    "half_frames",
    "bombs": "fork threads memory disk output million_tests spinning small_dtype question_numbers "
    "million_texts zero_size_arrays",
    "survivors": "new_session double_fork",
    "extra_files": "conftest pytest_ini pyproject sitecustomize usercustomize numpy_module "
    "torch_module common_package pth_file stored_answers",
    "names": "symbolic_link_to_tests hard_link names_that_lead_out absolute_names zip_bomb "
    "hundred_thousand_files odd_encodings nul_bytes huge_source syntax_error byte_order_mark "
    "carriage_returns names_that_control",
    "checkpoints": "pickle torch_load",
    "network": "connect names unix_sockets abstract_sockets",
    "environment": "ld_preload pythonpath secrets proc ptrace shared_memory descriptors",
    "showing": "printed raised returned terminal_controls parameter_names notebook_cells "
    "file_names notebook_clock seconds_slept",
    "protocol": "wrong_lengths giant_lengths deep_nesting wrong_dtypes negative_shapes "
    "extra_replies later_replies forged_layouts forged_statuses",
    "fingerprints": "stored_answers seed table_by_bytes table_by_shape answers_on_disk",
    "inputs": "report_replaced call_skipped watched_call_spared memory_unmapped memory_written "
    "places_outside changed_later",
    "timing": "answers_remembered answers_on_arrival loss_alone part_of_the_batch "
    "gradients_left_out loops_shared",
    "measuring": "times_forged memory_forged runs_forged",
    "neighbors": "access_times file_notifications file_locks futexes load process_ids page_cache "
    "machine_wide_counts",
    "second_runs": "twin_called more_than_asked kept_for_later returned objects_searched patched "
    "hidden_inputs_shown",
    "standins": "later_assignments lab pytorch_in_memory pytorch_behind_functions files connection",
    "forbidden": "torch_conv2d lstm multihead attention_direct autograd attention_getattr "
    "attention_alias attention_importlib attention_eval layer_norm_packets layer_norm_native "
    "layer_norm_group_norm layer_norm_script layer_norm_graph layer_norm_decompositions "
    "linear_cross_entropy",
}


@pytest.fixture(scope="module")
def gradings(request):
    """The entries that this run of pytest has chosen."""
    names = [getattr(item, "callspec", None) for item in request.session.items]
    chosen = {spec.params["name"] for spec in names if spec and "name" in spec.params}
    parse, parsing = ast.parse, set()

    def noted(*arguments, **options):
        parsing.add(threading.current_thread())
        return parse(*arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ast, "parse", noted)
        with CorpusGradings([ATTACKS[name] for name in ATTACKS if name in chosen]) as made:
            made.parsing = parsing
            yield made


def test_every_kind_of_attack_has_its_entries():
    wanted = {f"{row}/{item}" for row, items in ITEMS.items() for item in items.split()}
    assert wanted <= CORPUS.keys()
    assert {entry.row for entry in CORPUS.values()} == ITEMS.keys()
    assert len(CORPUS) >= 60
    assert len({entry.tries for entry in CORPUS.values()}) == len(CORPUS)


def test_a_sample_has_an_attack_of_every_kind():
    assert {CORPUS[name].row for name in CHOSEN} == ITEMS.keys()


@pytest.mark.parametrize("name", [*CHOSEN, *FUZZED])
def test_a_hostile_submission_gets_what_its_honest_part_earned(name, gradings, record_property):
    outcome = gradings.outcomes[name].result(timeout=900)
    row = judge_attack(ATTACKS[name], outcome)
    record_property("peak_mb", row.peak_mb)
    record_property("seconds", row.seconds)
    assert row.problems == []
    check_content(outcome.graded.content)


def test_syntax_trees_are_made_in_one_thread_only(gradings):
    """Python before 3.11.8 fails where two threads make them at the same moment."""
    for outcome in gradings.outcomes.values():
        outcome.exception(timeout=900)
    assert gradings.parsing == {threading.main_thread()}


def test_an_attack_that_is_still_graded_elsewhere_is_no_survivor_here(monkeypatch):
    """One tree looks around while another grades, and while what that one has killed dies."""
    monkeypatch.setattr(leftover_traces, "DYING_SECONDS", 0.3)
    call = "import ctypes, time; ctypes.CDLL(None).prctl(15, b'hostile-sleep'); print(flush=True); "
    with subprocess.Popen(
        [sys.executable, "-c", call + "time.sleep(60)"], stdout=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        found = f"{process.pid} hostile-sleep"
        assert found in survivors(None, -1, set(), set())
        assert found not in survivors(None, -1, set(), {os.getpid()})
        assert found in survivors(None, -1, set(), {2})
        monkeypatch.setattr(leftover_traces, "DYING_SECONDS", 60.0)
        threading.Timer(0.5, process.kill).start()
        assert found not in survivors(None, -1, set(), set())
