"""How the tests of exercise 6.7 check what a model writes, and what it looks at."""

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
from tests.a6_transformer.model_cases import BEGIN, END, draw_ids, draw_model, silent_model

CLOSE = 1e-9  # between two choices that are nearer to each other, rounding may decide
SLIM = {"num_heads": 1, "d_ff": 1, "max_length": 64}
ENDS_AT_ONCE = [1, 1, 7, 2, 3]  # logits of a steady_model

# Logits of what follows each id, a digit for each next one, and what a search with these settings
# finds, worked out step by step.
# No two hypotheses between which there is a choice are nearer to each other than 0.03.
SEARCHES = (
    (
        ("313043", "253001", "442533", "100015", "335404", "114113"),
        (
            ({"max_length": 4, "width": 2, "alpha": 0.5}, []),
            ({"max_length": 3, "width": 2, "alpha": 1.0}, [5, 5]),
            ({"max_length": 5, "width": 2, "alpha": 1.0}, [5, 5, 5, 5]),
        ),
    ),
    (
        ("252240", "510321", "002324", "135204", "203532", "110305"),
        (
            ({"max_length": 4, "width": 2, "alpha": 0.0}, [3]),
            ({"max_length": 3, "width": 2, "alpha": 2.0}, [4, 3]),
            ({"max_length": 4, "width": 2, "alpha": 1.0}, [4, 3, 5, 5]),
            ({"max_length": 4, "width": 3, "alpha": 1.0}, [3, 5, 5, 5]),
        ),
    ),
)


def draw_ranked(oracle, rng, sizes, alphas):
    """A model, sources, and the clearly best translation of each source for each alpha."""
    lengths, max_length = sizes
    while True:
        model, source = draw_model(rng, target_vocabulary=6), draw_ids(rng, 9, lengths)
        trees = grow_trees(oracle, model, source, max_length)
        ranked = {alpha: [ranking(tree, max_length, alpha) for tree in trees] for alpha in alphas}
        if all(r[0][0] - r[1][0] > CLOSE for rows in ranked.values() for r in rows):
            best = {alpha: [list(r[0][1]) for r in rows] for alpha, rows in ranked.items()}
            return model, source, best


def grow_trees(oracle, model, source, max_length):
    """For each source, the log-probabilities after every beginning, which is a tuple of ids."""
    words = range(END + 1, model.settings["target_vocabulary"])
    trees = [{} for _ in source]
    for length in range(max_length):
        beginnings = list(itertools.product(words, repeat=length))
        prefix = torch.tensor([(BEGIN, *ids) for ids in beginnings]).repeat(len(source), 1)
        sources = source.repeat_interleave(len(beginnings), dim=0)
        logits = oracle.output(*model, (sources, prefix))
        found = torch.log_softmax(logits[:, length], dim=1).unflatten(0, (len(source), -1))
        for tree, rows in zip(trees, found.tolist(), strict=True):
            tree.update(zip(beginnings, rows, strict=True))
    return trees


def ranking(tree, max_length, alpha):
    """All translations that there are, with their scores, from the best on."""
    scored = []
    for ids, following in tree.items():
        total = sum(tree[ids[:place]][ids[place]] for place in range(len(ids)))
        scored.append(((total + following[END]) / (len(ids) + 1) ** alpha, ids))
        if len(ids) == max_length - 1:
            scored += [
                ((total + following[last]) / max_length**alpha, (*ids, last))
                for last in range(END + 1, len(following))
            ]
    return sorted(scored, reverse=True)


def expected_next(oracle, model, source, prefix):
    """PyTorch's log-probabilities after a prefix, and -inf for padding and BEGIN."""
    expected = torch.log_softmax(oracle.output(*model, (source, prefix))[:, -1], dim=1)
    expected[:, :END] = -math.inf
    return expected


def compare_next(result, expected, situation):
    tolerance = FINE if expected.dtype == torch.float64 else None
    what = f"the log-probabilities ({situation})"
    assert_close(result, expected, what, ("sequence", "id"), tolerance)


def check_translations(decoded, expected, what):
    """A list of ids for each source, with the right ones."""
    check_lists(decoded, len(expected), what)
    assert_equal(list(map(list, decoded)), list(map(list, expected)), what=f"what {what} returns")


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
    """Each source gets alone what it got in a batch. alone: what greedy_decode gave for each."""
    check(
        all(isinstance(found, list) and len(found) == 1 for found in alone),
        "greedy_decode must return a list with one entry for each source.",
    )
    check_translations([found[0] for found in alone], decoded, "greedy_decode, one by one,")


def check_greedy_refuses(student, module, source, decoded):
    """Lengths and sources that make no sense; for exact_match, lists that don't fit."""
    for wrong in (0, -1):
        check_refused("a max_length below 1", student.decoding.greedy_decode, module, source, wrong)
    check_refused("a source in a list", student.decoding.greedy_decode, module, source.tolist())
    check_refused("nothing decoded", student.decoding.exact_match, [], source[:0])
    check_refused("fewer sequences than targets", student.decoding.exact_match, decoded[1:], source)


def check_likeliest(decoded, oracle, model, source, *, max_length):
    """Each token, and the END after the last, is the one that PyTorch's layers score highest."""
    check_lists(decoded, len(source), "greedy_decode")
    words = range(END + 1, model.settings["target_vocabulary"])
    check(
        all(len(ids) <= max_length and set(ids) <= set(words) for ids in decoded),
        "greedy_decode must return at most max_length ids, and no special ones.",
    )
    target = torch.zeros(len(source), 1 + max(map(len, decoded)), dtype=torch.int64)
    target[:, 0] = BEGIN
    for row, ids in zip(target, decoded, strict=True):
        row[1 : 1 + len(ids)] = torch.tensor(ids)
    logits = oracle.output(*model, (source, target))
    for ids, scores in zip(decoded, logits[..., END:], strict=True):
        for place, chosen in enumerate([*ids, END][:max_length]):
            check(
                float(scores[place, chosen - END]) > float(scores[place].max()) - CLOSE,
                "greedy_decode goes on with a token that is not the likeliest.",
                f"It is token {place} of {ids}, or the end after it.",
            )


def table_model(table):
    """A model whose next id depends on the last one alone: table[last] holds the logits."""
    # The last norm undoes itself: what comes out of it is the unit vector of the last id.
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
    """A model with the same logits at every place, exact to the last bit."""
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
    # sees, and so tells which id to begin with; padding would tell to end at once.
    size = highest + 1
    block = silent_model((size, size), d_model=2 * size, **SLIM)
    unit, one = torch.eye(2 * size).double(), torch.ones(2 * size).double()
    for side, share in (("encoder", 0.5 / size), ("decoder", 1 / size)):
        spread = math.sqrt(share - share**2 + 1e-5)
        gains = {f"{side}__norm__weight": spread * one, f"{side}__norm__bias": share * one}
        block = block.changed(**gains)
    sources = unit[size:].clone()
    sources[0] = unit[size + END]  # padding, if anyone looked at it
    following = torch.zeros(size, 2 * size).double()
    following[range(END, highest), range(END + 1, size)] = 10.0
    following[5, END] = 10.0  # what comes after END is no one's business
    following[range(size), range(size, 2 * size)] = 3.0
    return block.changed(
        source_embedding__weight=sources / math.sqrt(2 * size),
        target_embedding__weight=unit[:size] / math.sqrt(2 * size),
        decoder__layers__0__cross_attention__value__weight=unit,
        decoder__layers__0__cross_attention__out__weight=unit,
        output__weight=following,
    )


def counting_sources(begins):
    """A source for each id to begin with, which it consists of; of several lengths."""
    source = torch.zeros(len(begins), 3, dtype=torch.int64)
    for index, begin in enumerate(begins):
        source[index, : 1 + index % 3] = begin
    return source


def logs(chances):
    """A row of a table from the chances of END, 3, 4, ...; padding and BEGIN get next to none."""
    return [-60.0, -60.0, *(math.log(chance) if chance else -60.0 for chance in chances)]


def check_leaves_all(function, module, model, arguments):
    """Neither arguments nor weights are others after a call."""
    check_unchanged(function._label, function, module, *arguments)
    check_same_weights(module, model.parameters, function._label)


def check_beam_leaves_all(beam_decode, module, model, source):
    """Neither sources nor weights, nor the mode, are others after beam_decode."""
    for training in (True, False):
        module.train(training)
        check_unchanged("beam_decode", beam_decode, module, source, 3, 2)
        check(module.training is training, "beam_decode must leave the model in its mode.")
    check_same_weights(module, model.parameters, "beam_decode")


def check_beam_refuses(beam_decode, module, source):
    """Lengths, widths and alphas that make no sense raise ValueError; the call beside them not."""
    check(beam_decode(module, source, 1, 1, 0.0) is not None, "beam_decode returned None.")
    for max_length in (0, -1):
        check_refused("a max_length below 1", beam_decode, module, source, max_length)
    for width in (0, -1):
        check_refused("a width below 1", beam_decode, module, source, 2, width)
    for alpha in (-0.1, math.nan, math.inf, -math.inf):
        situation = "an alpha that is not from 0 on, and finite"
        check_refused(situation, beam_decode, module, source, 2, 2, alpha)
    check_refused("a source in a list", beam_decode, module, source.tolist())


def check_learned_places_end(decode, module):
    """More tokens than learned places are refused at the start. module: one that writes none."""
    source = torch.tensor([[3, 4], [4, 0]])
    check_translations(decode(module, source, 64), [[], []], decode._label)
    check_refused("more tokens than learned places", decode, module, source, 65)


def compare_maps(maps, expected):
    """The weights of all layers and heads are those of nn.MultiheadAttention."""
    check(
        isinstance(maps, dict) and set(maps) == set(expected),
        "attention_maps must return a dict with encoder, decoder and cross.",
    )
    for name, wanted in expected.items():
        axes = ("layer", "sequence", "head", "query", "key")
        tolerance = FINE if wanted.dtype == torch.float64 else None
        assert_close(maps[name], wanted, f"the weights of {name}", axes, tolerance)


def check_hooks(module, hooks):
    check(
        hooks_of(module) == hooks,
        "attention_maps leaves hooks on the model.",
        help="register_forward_hook returns a handle: call its remove() when you are done.",
    )


def check_untracked(attention_maps, module, ids):
    tracked = tracked_entries(attention_maps, module, *ids)
    check(not tracked, "What attention_maps returns has gradients.", f"They are {tracked}.")
