"""How the tests of exercise 6.7 check generated tokens and attention maps."""

import itertools
import math

import torch

from common.testing.checks import check_refused, check_unchanged
from common.testing.compare import assert_close, assert_equal, check
from common.testing.remote.torch_modules import (
    check_same_weights,
    hooks_of,
    tracked_entries,
)
from tests.a6_transformer.cases import FINE
from tests.a6_transformer.model_cases import BOS, EOS, draw_ids, draw_model, silent_model

CLOSE = 1e-9  # between two choices that are closer than this, rounding may decide
SLIM = {"num_heads": 1, "d_ff": 1, "max_length": 64}
ENDS_AT_ONCE = [1, 1, 7, 2, 3]  # logits of a steady_model

# For each id the logits of the next one, a digit each, and what a search with these settings finds,
# worked out step by step.
# No two hypotheses between which there is a choice are closer than 0.03.
SEARCHES = (
    (
        ("313043", "253001", "442533", "100015", "335404", "114113"),
        (
            ({"max_length": 4, "beam_width": 2, "length_penalty": 0.5}, []),
            ({"max_length": 3, "beam_width": 2, "length_penalty": 1.0}, [5, 5]),
            ({"max_length": 5, "beam_width": 2, "length_penalty": 1.0}, [5, 5, 5, 5]),
        ),
    ),
    (
        ("252240", "510321", "002324", "135204", "203532", "110305"),
        (
            ({"max_length": 4, "beam_width": 2, "length_penalty": 0.0}, [3]),
            ({"max_length": 3, "beam_width": 2, "length_penalty": 2.0}, [4, 3]),
            ({"max_length": 4, "beam_width": 2, "length_penalty": 1.0}, [4, 3, 5, 5]),
            ({"max_length": 4, "beam_width": 3, "length_penalty": 1.0}, [3, 5, 5, 5]),
        ),
    ),
)


def draw_ranked(oracle, rng, sizes, penalties):
    """A model, sources, and the clearly best translation of each source for each penalty."""
    lengths, max_length = sizes
    while True:
        model, source = draw_model(rng, target_vocab_size=6), draw_ids(rng, 9, lengths)
        trees = grow_trees(oracle, model, source, max_length)
        ranked = {p: [ranking(tree, max_length, p) for tree in trees] for p in penalties}
        if all(r[0][0] - r[1][0] > CLOSE for rows in ranked.values() for r in rows):
            best = {p: [list(r[0][1]) for r in rows] for p, rows in ranked.items()}
            return model, source, best


def grow_trees(oracle, model, source, max_length):
    """For each source, the log-probabilities after every prefix, which is a tuple of ids."""
    words = range(EOS + 1, model.settings["target_vocab_size"])
    trees = [{} for _ in source]
    for length in range(max_length):
        prefixes = list(itertools.product(words, repeat=length))
        targets = torch.tensor([(BOS, *ids) for ids in prefixes]).repeat(len(source), 1)
        sources = source.repeat_interleave(len(prefixes), dim=0)
        logits = oracle.output(*model, (sources, targets))
        found = torch.log_softmax(logits[:, length], dim=1).unflatten(0, (len(source), -1))
        for tree, rows in zip(trees, found.tolist(), strict=True):
            tree.update(zip(prefixes, rows, strict=True))
    return trees


def ranking(tree, max_length, length_penalty):
    """All possible translations with their scores, the best first."""
    scored = []
    for ids, following in tree.items():
        total = sum(tree[ids[:index]][ids[index]] for index in range(len(ids)))
        scored.append(((total + following[EOS]) / (len(ids) + 1) ** length_penalty, ids))
        if len(ids) == max_length - 1:
            scored += [
                ((total + following[last]) / max_length**length_penalty, (*ids, last))
                for last in range(EOS + 1, len(following))
            ]
    return sorted(scored, reverse=True)


def expected_next(oracle, model, source, prefix):
    """PyTorch's log-probabilities after a prefix, and -inf for PAD and BOS."""
    expected = torch.log_softmax(oracle.output(*model, (source, prefix))[:, -1], dim=1)
    expected[:, :EOS] = -math.inf
    return expected


def compare_next(result, expected, situation):
    tolerance = FINE if expected.dtype == torch.float64 else None
    what = f"the log-probabilities ({situation})"
    assert_close(result, expected, what, ("sequence", "id"), tolerance=tolerance)


def check_translations(decoded, expected, what):
    """A list of ids for each source, with the right ones."""
    check_lists(decoded, len(expected), what)
    assert_equal(list(map(list, decoded)), list(map(list, expected)), what=f"the result of {what}")


def check_lists(decoded, count, what):
    check(
        isinstance(decoded, list) and len(decoded) == count,
        f"{what} must return a list with one entry for each source.",
    )
    check(
        all(isinstance(ids, list) and all(type(i) is int for i in ids) for ids in decoded),
        f"{what} must return a list of Python ints for each source.",
        help="tensor.tolist() gives Python ints.",
    )


def compare_one_by_one(alone, decoded):
    """Each source alone gives the same as in a batch. alone: greedy_decode's result for each."""
    check(
        all(isinstance(found, list) and len(found) == 1 for found in alone),
        "greedy_decode must return a list with one entry for each source.",
    )
    check_translations(
        [found[0] for found in alone], decoded, "greedy_decode, one source at a time,"
    )


def check_greedy_refuses(student, module, source, decoded):
    """Invalid lengths and sources; for exact_match, lists of another length."""
    for wrong in (0, -1):
        check_refused("a max_length below 1", student.decoding.greedy_decode, module, source, wrong)
    check_refused(
        "a list instead of a source", student.decoding.greedy_decode, module, source.tolist()
    )
    check_refused("an empty list", student.decoding.exact_match, [], source[:0])
    check_refused("fewer sequences than targets", student.decoding.exact_match, decoded[1:], source)


def check_most_likely(decoded, oracle, model, source, *, max_length):
    """Each token, and the EOS after the last, has the highest logit of PyTorch's layers."""
    check_lists(decoded, len(source), "greedy_decode")
    words = range(EOS + 1, model.settings["target_vocab_size"])
    check(
        all(len(ids) <= max_length and set(ids) <= set(words) for ids in decoded),
        "greedy_decode must return at most max_length ids, and no special tokens.",
    )
    target = torch.zeros(len(source), 1 + max(map(len, decoded)), dtype=torch.int64)
    target[:, 0] = BOS
    for row, ids in zip(target, decoded, strict=True):
        row[1 : 1 + len(ids)] = torch.tensor(ids)
    logits = oracle.output(*model, (source, target))
    for ids, rows in zip(decoded, logits[..., EOS:], strict=True):
        for index, chosen in enumerate([*ids, EOS][:max_length]):
            check(
                float(rows[index, chosen - EOS]) > float(rows[index].max()) - CLOSE,
                "greedy_decode must take the most likely token, and takes another one.",
                f"It is token {index} of {ids}, or the EOS after the last.",
            )


def table_model(table):
    """A model whose next id depends on the last one alone: table[last] holds the logits."""
    # The last norm undoes itself: its output is the unit vector of the last id.
    size = len(table)
    unit, one = torch.eye(size, dtype=torch.float64), torch.ones(size, dtype=torch.float64)
    spread = math.sqrt((1 - 1 / size) / size + 1e-5)
    return silent_model((5, size), d_model=size, **SLIM).changed(
        target_embedding__weight=unit / math.sqrt(size),
        decoder__norm__weight=spread * one,
        decoder__norm__bias=one / size,
        output__weight=torch.tensor(table, dtype=torch.float64).T,
    )


def steady_model(logits):
    """A model with the same logits at every position, exact to the last bit."""
    size = len(logits)
    first = torch.zeros(size, dtype=torch.float64)
    first[0] = 1
    return silent_model((5, size), d_model=size, **SLIM).changed(
        target_embedding__weight=torch.eye(size, dtype=torch.float64) / math.sqrt(size),
        decoder__norm__weight=torch.zeros_like(first),
        decoder__norm__bias=first,
        output__weight=torch.tensor(logits, dtype=torch.float64)[:, None] * first,
    )


def counting_model(highest):
    """A model that counts down from the id that its source consists of, to 3, and ends."""
    # The last norms undo themselves, as in table_model. Cross-attention adds the mean of what it
    # attends to, and so gives the first id; padding would make the sequence end at once.
    size = highest + 1
    block = silent_model((size, size), d_model=2 * size, **SLIM)
    unit, one = torch.eye(2 * size).double(), torch.ones(2 * size).double()
    for side, share in (("encoder", 0.5 / size), ("decoder", 1 / size)):
        spread = math.sqrt(share - share**2 + 1e-5)
        gains = {f"{side}__norm__weight": spread * one, f"{side}__norm__bias": share * one}
        block = block.changed(**gains)
    sources = unit[size:].clone()
    sources[0] = unit[size + EOS]  # padding, if any query attended to it
    following = torch.zeros(size, 2 * size).double()
    following[range(EOS, highest), range(EOS + 1, size)] = 10.0
    following[5, EOS] = 10.0  # what comes after EOS doesn't matter
    following[range(size), range(size, 2 * size)] = 3.0
    return block.changed(
        source_embedding__weight=sources / math.sqrt(2 * size),
        target_embedding__weight=unit[:size] / math.sqrt(2 * size),
        decoder__layers__0__cross_attention__value__weight=unit,
        decoder__layers__0__cross_attention__out__weight=unit,
        output__weight=following,
    )


def counting_sources(starts):
    """A source for each id to start from, which it consists of; of several lengths."""
    source = torch.zeros(len(starts), 3, dtype=torch.int64)
    for index, start in enumerate(starts):
        source[index, : 1 + index % 3] = start
    return source


def logs(probabilities):
    """A row of a table from the probabilities of EOS, 3, 4, ...; PAD and BOS get almost none."""
    return [-60.0, -60.0, *(math.log(p) if p else -60.0 for p in probabilities)]


def check_changes_nothing(function, module, model, arguments):
    """A call changes neither its arguments nor the model's parameters."""
    check_unchanged(function._label, function, module, *arguments)
    check_same_weights(module, model.parameters, function._label)


def check_beam_changes_nothing(beam_decode, module, model, source):
    """beam_decode changes neither sources nor parameters, and restores the mode."""
    for training in (True, False):
        module.train(training)
        check_unchanged("beam_decode", beam_decode, module, source, 3, 2)
        check(module.training is training, "beam_decode must restore the model's mode.")
    check_same_weights(module, model.parameters, "beam_decode")


def check_beam_refuses(beam_decode, module, source):
    """Invalid lengths, beam widths and length penalties raise ValueError; a valid call doesn't."""
    check(beam_decode(module, source, 1, 1, 0.0) is not None, "beam_decode returned None.")
    for max_length in (0, -1):
        check_refused("a max_length below 1", beam_decode, module, source, max_length)
    for beam_width in (0, -1):
        check_refused("a beam_width below 1", beam_decode, module, source, 2, beam_width)
    for penalty in (-0.1, math.nan, math.inf, -math.inf):
        situation = "a length_penalty that is negative or not finite"
        check_refused(situation, beam_decode, module, source, 2, 2, penalty)
    check_refused("a list instead of a source", beam_decode, module, source.tolist())


def check_learned_positions_end(decode, module):
    """A max_length beyond the learned positions is refused. module: one that generates no token."""
    source = torch.tensor([[3, 4], [4, 0]])
    check_translations(decode(module, source, 64), [[], []], decode._label)
    check_refused("a max_length beyond the learned positions", decode, module, source, 65)


def compare_maps(maps, expected):
    """The weights of all layers and heads are those of nn.MultiheadAttention."""
    check(
        isinstance(maps, dict) and set(maps) == set(expected),
        "attention_maps must return a dict with encoder, decoder and cross.",
    )
    for name, wanted in expected.items():
        axes = ("layer", "sequence", "head", "query", "key")
        tolerance = FINE if wanted.dtype == torch.float64 else None
        assert_close(maps[name], wanted, f"the weights of {name}", axes, tolerance=tolerance)


def check_hooks(module, hooks):
    check(
        hooks_of(module) == hooks,
        "attention_maps must remove its hooks from the model.",
        help="register_forward_hook returns a handle: call its remove() when you are done.",
    )


def check_untracked(attention_maps, module, ids):
    tracked = tracked_entries(attention_maps, module, *ids)
    check(
        not tracked,
        "The result of attention_maps must not require gradients.",
        f"These do: {tracked}.",
    )
