"""The experiments of assignment 5: what your attention does, in plots and numbers.

    python -m assignments.a5_attention.experiments                    # all five
    python -m assignments.a5_attention.experiments scale --quick      # one, in a short version

Given, and not graded. Needs exercises 5.1 and 5.2 for examples, 5.6 for scale, 5.7 for lookup,
5.3 to 5.5 for heads, and 5.3 to 5.5 and 5.7 for order.
"""

import math
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from assignments.a5_attention.attention import (
    MultiHeadAttention,
    causal_mask,
    combine_masks,
    influence,
    padding_mask,
    permutation_gap,
    saturation,
    score_variance,
    soft_lookup,
)
from assignments.a5_attention.attention_numpy import (
    attention_backward,
    attention_forward,
    attention_loops,
    softmax,
    softmax_backward,
)
from common.training.experiments import new_parser, report, run_each
from common.training.plots import (
    BLUE,
    FAINT,
    FONT,
    GREEN,
    INK,
    ORANGE,
    PAPER,
    PINK,
    RED,
    SKY,
    save,
    tint,
)
from common.training.training_progress import TrainingDisplay

COLORS = (SKY, BLUE, PINK, GREEN, ORANGE, RED)


# The worked examples of the handout

CAT_EATS_FISH = {
    "q": np.array([[0.8, 0.2]]),
    "k": np.array([[0.9, 0.1], [0.4, 0.3], [0.5, 0.5]]),
    "v": np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]),
}
# The features: animal, action, object, definiteness.
SIX_WORDS = {
    "q": np.array([[0.9, 0.1, 0.2, 0.3]]),
    "k": np.array(
        [
            [0.0, 0.0, 0.0, 1.0],
            [1.0, 0.0, 0.3, 0.0],
            [0.0, 1.0, 0.0, 0.0],
            [0.0, 0.0, 0.0, 0.0],
            [0.0, 0.0, 0.0, 1.0],
            [0.0, 0.0, 1.0, 0.0],
        ]
    ),
    "v": np.array(
        [
            [0.1, 0.0, 0.0, 0.8],
            [0.9, 0.0, 0.1, 0.7],
            [0.0, 0.9, 0.0, 0.3],
            [0.0, 0.0, 0.5, 0.0],
            [0.0, 0.0, 0.0, 0.9],
            [0.0, 0.0, 0.9, 0.6],
        ]
    ),
}
WORDS = ("the", "cat", "sat", "on", "the", "mat")
ACTION = np.array([[0.1, 0.9, 0.1, 0.1]])  # another query for the six words: what happens?


def examples(out: Path, quick: bool, seed: int) -> None:
    """Compute the handout's examples step by step. No plots, and nothing is random."""
    print("examples: the numbers of the handout, from your attention_numpy.py")
    weights = softmax(np.log([1.0, 2.0, 3.0]))
    show("softmax of ln 1, ln 2, ln 3", weights)
    show("  dx for dout = 1, 0, 2", softmax_backward(np.array([1.0, 0.0, 2.0]), weights))
    show("softmax of 2.1, 0.3, -0.5, 1.8", softmax(np.array([2.1, 0.3, -0.5, 1.8])))
    q, k, v = CAT_EATS_FISH.values()
    scores = q @ k.T
    show("cat eats fish: scores", scores)
    show("  scaled", scores / math.sqrt(2))
    found, weights = attention_loops(q, k, v)
    show("  weights", weights)
    show("  out", found)
    unmasked = weights[0, 0] + weights[0, 2]
    example_backward(q, k, v)
    found, weights, _ = attention_forward(q, k, v, np.array([[True, False, True]]))
    show("cat eats fish, eats masked: weights", weights)
    show("  out", found)
    show("  the sum of these two weights without a mask", unmasked)
    q, k, v = SIX_WORDS.values()
    found, weights, _ = attention_forward(q, k, v)
    show("the six words: scores", q @ k.T)
    show("  scaled", q @ k.T / 2)
    show("  exp of these", np.exp(q @ k.T / 2))
    show("  their sum", np.exp(q @ k.T / 2).sum())
    show("  weights", weights)
    show("  out", found)
    _, weights, _ = attention_forward(ACTION, k, v)
    show("the six words, query 0.1, 0.9, 0.1, 0.1: weights", weights)


def example_backward(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> None:
    """The backward pass of cat eats fish, and a check of one gradient."""
    dout = np.array([[1.0, -1.0]])
    found, weights, cache = attention_forward(q, k, v)
    dweights = dout @ v.T
    dscaled = softmax_backward(dweights, weights)
    dq, dk, dv = attention_backward(dout, cache)
    show("  for dout = 1, -1: dweights", dweights)
    show("  back through the softmax", dscaled)
    show("  back through the scale", dscaled / math.sqrt(2))
    show("  dq", dq)
    for name, dkey, dvalue in zip(("cat", "eats", "fish"), dk, dv, strict=True):
        show(f"  {name}: dk and dv", [*dkey, *dvalue])
    moved, _, _ = attention_forward(q + np.array([[0.01, 0.0]]), k, v)
    losses = [float((array * dout).sum()) for array in (found, moved)]
    print(f"  the loss is {losses[0]:.5f}, and {losses[1]:.5f} with q = 0.81, 0.2")


def show(what: str, numbers: object) -> None:
    """Print a line of numbers with four decimals."""
    listed = ", ".join(f"{number:.4f}" for number in np.ravel(numbers))
    print(f"  {what}: {listed}")


# Why scores are divided by the square root of d_k

SIZES = (1, 4, 16, 64, 256, 1024)
KEYS = 32
QUERIES = 25  # per set of keys
SATURATED = 0.01  # a query with a Jacobian norm below this learns next to nothing


def scale(out: Path, quick: bool, seed: int) -> None:
    """Variance of scores, and their softmax, against d_k: scaled and not scaled."""
    blocks, samples = (4, 2_000) if quick else (40, 10_000)
    print(f"scale: random queries and keys; softmax over {KEYS} keys, {QUERIES * blocks:,} queries")
    found: dict[str, list[tuple[float, ...]]] = {"not scaled": [], "scaled": []}
    with TrainingDisplay(len(SIZES) * len(found) * blocks, title="scale") as display:
        for name, measured in found.items():
            for d_k in SIZES:
                variance = score_variance(
                    d_k, name == "scaled", np.random.default_rng(seed), samples
                )
                rng = np.random.default_rng(seed + 1)  # score_variance may draw in any order
                largest, norm = saturate(rng, d_k, name == "scaled", blocks, display)
                saturated = (norm < SATURATED).double().mean()
                measured.append((variance, largest.mean().item(), norm.median().item()))
                print(
                    f"  {name}, d_k {d_k}: variance {variance:,.2f}, "
                    f"mean largest weight {largest.mean():.2f}, "
                    f"median Jacobian norm {norm.median():.2g}, "
                    f"below {SATURATED:g} in {saturated:.0%}"
                )
    report(save(scale_chart(found), out / "scale.png"))
    show_gap("by hand", math.log(3))
    show_gap("scaled, any d_k", math.sqrt(2))
    for d_k in (4, 64, 1024):
        show_gap(f"not scaled, d_k {d_k}", math.sqrt(2 * d_k))


def show_gap(what: str, gap: float) -> None:
    """Print largest weight and Jacobian norm for two scores with this gap."""
    largest, norm = saturation(torch.tensor([0.0, gap], dtype=torch.float64))
    measured = f"largest weight {largest:.4f}, Jacobian norm {norm:.3g}"
    print(f"  two scores, {what}: gap {gap:.2f}, {measured}")


def saturate(
    rng: np.random.Generator, d_k: int, scaled: bool, blocks: int, display: TrainingDisplay
) -> tuple[Tensor, Tensor]:
    """Largest weight and Jacobian norm for blocks of random queries, each with its own keys."""
    weights, norms = [], []
    for _ in range(blocks):
        queries, keys = rng.standard_normal((QUERIES, d_k)), rng.standard_normal((KEYS, d_k))
        scores = queries @ keys.T / (math.sqrt(d_k) if scaled else 1)
        largest, norm = saturation(torch.from_numpy(scores))
        weights.append(largest)
        norms.append(norm)
        display.step()
    return torch.cat(weights), torch.cat(norms)


def scale_chart(found: dict[str, list[tuple[float, ...]]]) -> Figure:
    """Variance, largest weight and Jacobian norm against d_k."""
    figure, panels = panels_of(1, 3, 9.6, 3.2)
    labels = ("variance of the scores", "mean largest weight", "median Jacobian norm")
    for column, (axes, label) in enumerate(zip(panels.flat, labels, strict=True)):
        for (name, measured), color in zip(found.items(), (ORANGE, BLUE), strict=True):
            values = [numbers[column] for numbers in measured]
            axes.plot(SIZES, values, "o-", color=color, markersize=4, label=name)
        axes.set(xscale="log", xticks=SIZES, xticklabels=SIZES, xlabel="d_k", ylabel=label)
        axes.minorticks_off()
    panels.flat[0].set(yscale="log")
    panels.flat[1].set(ylim=(0, 1))
    panels.flat[2].set(yscale="log")
    panels.flat[0].legend(frameon=False, fontsize=9)
    return figure


# Attention as a lookup in a table

TEMPERATURES = (0.0, 0.02, 0.1, 0.5, 2.0, 10.0)
TABLE = (3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0)  # the values; their keys lie on a circle
SHOWN = 100  # the angle, in degrees, of the query that is printed


def lookup(out: Path, quick: bool, seed: int) -> None:
    """Rotate a query in a circle of keys, and look up the six words, at several temperatures."""
    print(f"lookup: {len(TABLE)} keys on a circle with the values {TABLE}")
    angles = np.arange(0, 361, 5 if quick else 1)
    temperatures = np.geomspace(0.01, 100, 21 if quick else 201)
    figure, panels = panels_of(1, 2, 9.6, 3.8)
    left, right = panels.flat
    with TrainingDisplay(
        len(TEMPERATURES) * len(angles) + len(temperatures), title="lookup"
    ) as display:
        for temperature, color in zip(TEMPERATURES, COLORS, strict=True):
            curve = [lookup_angle(angle, temperature, display)[0] for angle in angles]
            left.plot(angles, curve, color=color, label=f"{temperature:g}")
            value, weights = lookup_angle(SHOWN, temperature)
            print(
                f"  a query at {SHOWN} degrees, temperature {temperature:g}: value {value:.3f}, "
                f"weights from {min(weights):.3f} to {max(weights):.3f}"
            )
        weights_at = np.array([six_words(each, display)[1] for each in temperatures])  # (..., 6)
    for temperature in (10, 2, 1, 0.5, 0.2, 0.1, 0.05, 0):
        value, weights = six_words(temperature)
        show(f"the six words, temperature {temperature:g}: weights", weights)
        show("  value", value)
    lookup_by_hand()
    left.plot(45 * np.arange(len(TABLE)), TABLE, "o", color=INK, markersize=4)
    left.set(
        xlabel="angle of the query, in degrees", ylabel="value found", xticks=range(0, 361, 90)
    )
    left.legend(frameon=False, fontsize=8.5, title="temperature", ncols=2, loc="upper left")
    for word in (1, 0, 5, 2, 3):  # from the best key down; both "the" have the same
        label = "the, each" if word == 0 else WORDS[word]
        right.plot(temperatures, weights_at[:, word], color=COLORS[word], label=label)
    right.axvline(2, color=FAINT, linewidth=0.8, linestyle=":")
    right.text(2.15, 0.93, "square root of d_k", color=INK, fontsize=8.5)
    right.set(xscale="log", ylim=(0, 1), xlabel="temperature", ylabel="weight")
    right.legend(frameon=False, fontsize=8.5)
    report(save(figure, out / "lookup.png"))


def lookup_by_hand() -> None:
    """A query for which two keys tie."""
    query = torch.tensor([1.0, 0.0], dtype=torch.float64)
    keys = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 5.0]], dtype=torch.float64)
    values = torch.tensor([[10.0], [20.0], [60.0]], dtype=torch.float64)
    for temperature in (0.0, 1.0):
        value, weights = soft_lookup(query, keys, values, temperature)
        show(f"by hand, temperature {temperature:g}: weights", weights)
        show("  value", value)


def lookup_angle(
    degrees: float, temperature: float, display: TrainingDisplay | None = None
) -> tuple[float, list[float]]:
    """The value that a unit query in this direction finds, and its weights."""
    around = torch.arange(len(TABLE), dtype=torch.float64) * 2 * math.pi / len(TABLE)
    keys = torch.stack([around.cos(), around.sin()], dim=1)  # (8, 2)
    angle = math.radians(degrees)
    query = torch.tensor([math.cos(angle), math.sin(angle)], dtype=torch.float64)
    values = torch.tensor(TABLE, dtype=torch.float64)[:, None]
    value, weights = soft_lookup(query, keys, values, temperature)
    if display is not None:
        display.step()
    return value.item(), weights.tolist()


def six_words(
    temperature: float, display: TrainingDisplay | None = None
) -> tuple[list[float], list[float]]:
    """The value that the handout's query finds among the six words, and its weights."""
    q, k, v = (torch.from_numpy(array) for array in SIX_WORDS.values())
    value, weights = soft_lookup(q[0], k, v, float(temperature))
    if display is not None:
        display.step()
    return value.tolist(), weights.tolist()


# What the heads of a random MultiHeadAttention attend to

D_MODEL, HEADS = 16, 4
PADDED = (*WORDS, "pad", "pad")


def heads(out: Path, quick: bool, seed: int) -> None:
    """The weights of each head, without a mask, with a causal and a padding mask, and with both."""
    print(f"heads: {HEADS} heads with random weights on '{' '.join(PADDED)}'")
    t, real = len(PADDED), len(WORDS)
    attention = random_heads(seed)
    x = random_words(PADDED, seed)[None]  # (1, t, d_model)
    causal, padding = causal_mask(t), padding_mask(torch.tensor([real]), t)
    masks = {
        "no mask": None,
        "causal": causal,
        "padding": padding,
        "both": combine_masks(causal, padding),
    }
    figure, panels = panels_of(len(masks), HEADS, 8.6, 9.0)
    figure.supylabel("query", fontsize=10)
    figure.supxlabel("key", fontsize=10)
    for row, (name, mask) in zip(panels, masks.items(), strict=True):
        with torch.no_grad():
            _, weights = attention(x, x, x, mask)
        allowed = torch.ones(t, t, dtype=torch.bool) if mask is None else mask.expand(1, t, t)[0]
        show_weights(name, weights, allowed)
        for head, axes in enumerate(row):
            grid(axes, weights[0, head], allowed, PADDED, 1.0)
            axes.set_title(f"{name}, head {head}", fontsize=9, fontfamily=FONT)
    report(save(figure, out / "heads.png"))
    with torch.no_grad():
        found, weights = attention(x, x, x, padding_mask(torch.tensor([0]), t))
    gap = (found - attention.out.bias).abs().max()
    print(
        f"  nothing but padding: largest weight {weights.max():g}, out is out.bias within {gap:g}"
    )
    count = sum(parameter.numel() for parameter in attention.parameters())
    print(f"  parameters: {count:,}, with 1 head {parameters_of_one_head():,}")


def show_weights(name: str, weights: Tensor, allowed: Tensor) -> None:
    """Print what must hold for weights (1, heads, t, t), and how far each head spreads them."""
    sums = (weights.sum(dim=-1) - 1).abs().max()
    hidden = weights[0][:, ~allowed]
    apart = (weights[..., 0, :] - weights[..., 4, :]).abs().max()
    numbers = ", ".join(f"{number_of_keys(head):.1f}" for head in weights[0])
    print(
        f"  {name}: rows sum to 1 within {sums:.0e}, largest weight on a hidden key "
        f"{hidden.max() if hidden.numel() else 0:g}, both 'the' differ by {apart:.2g}"
    )
    print(f"    effective number of keys, by head: {numbers}")


def parameters_of_one_head() -> int:
    """The number of parameters of a MultiHeadAttention of the same size with a single head."""
    return sum(parameter.numel() for parameter in MultiHeadAttention(D_MODEL, 1).parameters())


def number_of_keys(weights: Tensor) -> float:
    """The effective number of keys: 1 if all weight is on one key, t if it is uniform.

    It is the perplexity of a row, exp of its entropy, averaged over the rows.
    """
    logs = weights.clamp_min(1e-300).log()
    return (-(weights * logs).sum(dim=-1)).exp().mean().item()


def random_heads(seed: int) -> MultiHeadAttention:
    """A MultiHeadAttention with random weights, the same for every solution."""
    attention = MultiHeadAttention(D_MODEL, HEADS).double()
    rng = np.random.default_rng(seed)
    limit = 1 / math.sqrt(D_MODEL)
    with torch.no_grad():
        for _, parameter in sorted(attention.named_parameters()):
            drawn = rng.uniform(-limit, limit, tuple(parameter.shape))
            parameter.copy_(torch.from_numpy(drawn))
    return attention


def random_words(sentence: Iterable[str], seed: int) -> Tensor:
    """A random vector for each word, the same at each of its positions: (t, d_model).

    The standard deviation is 3: smaller vectors give small scores at initialization, and heads that
    hardly differ.
    """
    rng = np.random.default_rng(seed + 1)
    vectors: dict[str, np.ndarray] = {}
    for word in sentence:
        vectors.setdefault(word, rng.normal(scale=3, size=D_MODEL))
    return torch.from_numpy(np.stack([vectors[word] for word in sentence]))


# What reordering a sentence does

SENTENCE = ("the", "dog", "chased", "the", "cat")
REORDERED = (0, 4, 2, 3, 1)  # the cat chased the dog


def order(out: Path, quick: bool, seed: int) -> None:
    """Reorder a sentence with and without masks and positions; plot the influence of each word."""
    print(f"order: '{' '.join(SENTENCE)}', reordered")
    t = len(SENTENCE)
    attention = random_heads(seed)
    x = random_words(SENTENCE, seed)
    swap = torch.tensor(REORDERED)
    causal = causal_mask(t)
    rng = np.random.default_rng(seed)
    positions = torch.from_numpy(rng.normal(scale=3, size=(t, D_MODEL)))
    with_positions = add_positions(attention, positions)
    tries = [torch.from_numpy(rng.permutation(t)) for _ in range(20 if quick else 200)]
    for name, function, mask in (
        ("no mask", attention, None),
        ("causal mask", attention, causal),
        ("no mask, positions added", with_positions, None),
    ):
        with torch.no_grad():
            gap = permutation_gap(function, x[None], swap, mask)
            largest = max(permutation_gap(function, x[None], other, mask) for other in tries)
        print(f"  {name}: gap {gap:.2g}, at most {largest:.2g} in {len(tries)} random orders")
    with torch.no_grad():
        before, after = (attention(s, s, s)[0][0] for s in (x[None], x[None, swap]))
    print(
        f"  without a mask, 'dog' changes by {(before[1] - after[4]).abs().max():.2g}, "
        f"that at index 1 by {(before[1] - after[1]).abs().max():.2g}, "
        f"the mean by {(before.mean(0) - after.mean(0)).abs().max():.2g}"
    )
    padding = padding_mask(torch.tensor([t - 1]), t)[0]  # (1, t): the last word counts as padding
    cases = {"no mask": None, "causal": causal, "last word hidden": padding.expand(t, t)}
    report(save(influence_chart(attention, x, cases), out / "order.png"))


def add_positions(
    attention: MultiHeadAttention, positions: Tensor
) -> Callable[..., tuple[Tensor, Tensor]]:
    """The same attention, with a vector for each position added to its inputs."""

    def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None):
        return attention(query + positions, key + positions, value + positions, mask)

    return attend


def influence_chart(
    attention: MultiHeadAttention, x: Tensor, cases: dict[str, Tensor | None]
) -> Figure:
    """How strongly each output depends on each input, for several masks."""
    figure, panels = panels_of(1, len(cases), 9.0, 3.5)
    figure.supylabel("output", fontsize=10)
    figure.supxlabel("input", fontsize=10)
    found = {name: influence(attention, x, mask) for name, mask in cases.items()}
    top = max(table.max().item() for table in found.values())
    for axes, (name, table) in zip(panels.flat, found.items(), strict=True):
        mask = cases[name]
        above = table.triu(1).max()
        with torch.no_grad():
            weights = attention(x[None], x[None], x[None], mask)[1][0].mean(dim=0)
        match = np.corrcoef(table.flatten(), weights.flatten())[0, 1]
        print(
            f"  influence, {name}: largest above the diagonal {above:.2g}, exact zeros "
            f"{int((table == 0).sum())} of {table.numel()}, correlation with weights {match:.2f}"
        )
        grid(axes, table, table != 0, SENTENCE, top)
        axes.set_title(f"influence, {name}", fontsize=9, fontfamily=FONT)
    return figure


# Drawing


def panels_of(rows: int, columns: int, width: float, height: float) -> tuple[Figure, np.ndarray]:
    """A figure of width x height inches with rows x columns charts in the handout's style."""
    figure = Figure(figsize=(width, height), facecolor=PAPER, layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False)
    for axes in panels.flat:
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(FAINT)
        axes.tick_params(colors=INK, labelsize=8, labelfontfamily=FONT)
    return figure, panels


def grid(axes: Axes, table: Tensor, allowed: Tensor, names: tuple[str, ...], top: float) -> None:
    """A table of queries x keys in shades of blue; masked cells are gray."""
    shown = np.ma.masked_array(table.numpy(), mask=~allowed.numpy())
    axes.set_facecolor(tint(FAINT, 0.25))
    axes.imshow(shown, cmap="Blues", vmin=0, vmax=top)
    axes.set_xticks(range(len(names)), names, rotation=90, fontsize=7)
    axes.set_yticks(range(len(names)), names, fontsize=7)


EXPERIMENTS = {
    "examples": examples,
    "scale": scale,
    "lookup": lookup,
    "heads": heads,
    "order": order,
}


def main(arguments: list[str]) -> int:
    """Run the chosen experiments; returns 2 if something is missing."""
    parser = new_parser("a5_attention", __doc__.splitlines()[0], "a short version")
    return run_each(EXPERIMENTS, parser, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
