"""The experiments of assignment 3: what your recurrent.py does, as plots and texts.

    python -m assignments.a3_recurrent.experiments                    # all three
    python -m assignments.a3_recurrent.experiments memory --quick     # one, in a short version

Given, and not graded. Needs exercise 3.6 for gradients, 3.1 to 3.5 for memory, 3.7 for samples.
"""

import sys
from pathlib import Path

import numpy as np

from assignments.a3_recurrent.recurrent import (
    CharLM,
    Config,
    adam,
    bits_per_character,
    clip_by_global_norm,
    gradient_norms_through_time,
    lstm_backward,
    lstm_forward,
    lstm_parameters,
    rnn_backward,
    rnn_forward,
    sample,
    temporal_cross_entropy,
    train,
)
from common.data import Text, load_shakespeare
from common.training.experiments import new_parser, report, run_each
from common.training.plots import BLUE, FAINT, GREEN, INK, ORANGE, PINK, RED, SKY, chart, save
from common.training.training_progress import TrainingDisplay

Weights = dict[str, np.ndarray]


# How strongly the last state depends on an earlier one


def gradients(out: Path, quick: bool, seed: int) -> None:
    """Norms of dh_T / dh_t against the distance T - t, for fresh weights of several kinds."""
    steps, inputs, hidden = (50, 8, 24) if quick else (100, 16, 64)
    figure, axes = chart(7.2, 4.2)
    print(f"gradients: the norm of dh_T / dh_t, {hidden} units, fresh weights")
    for label, colour, cell, weights in fresh_cells(inputs, hidden, seed):
        x = np.random.default_rng(seed).normal(size=(steps, inputs))
        state = (np.zeros(hidden),) if cell == "rnn" else (np.zeros(hidden), np.zeros(hidden))
        norms = gradient_norms_through_time(cell, x, state, weights)[::-1]  # by distance
        axes.plot(np.maximum(norms, 1e-30), color=colour, label=label)
        shown = ", ".join(f"{norms[k]:.1e} over {k}" for k in (1, 10, steps // 2, steps))
        print(f"  {label}: {shown}")
    axes.set(yscale="log", ylim=(1e-14, 1e8))
    axes.set(xlabel="distance T - t in steps", ylabel="norm of dh_T / dh_t")
    axes.axhline(1, color=FAINT, linewidth=0.8, linestyle=":")
    axes.legend(frameon=False, fontsize=8.5, ncols=2, loc="upper left")
    report(save(figure, out / "gradients.png"))


def fresh_cells(inputs: int, hidden: int, seed: int):
    """(label, colour, kind of cell, weights): recurrent weights of three sizes, three biases."""
    for colour, gain in ((SKY, 0.5), (BLUE, 1.0), (RED, 2.0)):
        rng = np.random.default_rng(seed)
        # Small inputs: large ones drive tanh into its flat parts, where nothing can explode.
        w_xh = 0.1 * rng.normal(size=(inputs, hidden)) / np.sqrt(inputs)
        w_hh = gain * rng.normal(size=(hidden, hidden)) / np.sqrt(hidden)
        yield f"tanh RNN, gain {gain:g}", colour, "rnn", (w_xh, w_hh, np.zeros(hidden))
    for colour, bias in ((PINK, 0.0), (ORANGE, 1.0), (GREEN, 5.0)):
        rng = np.random.default_rng(seed)
        weights = lstm_parameters(rng, inputs, hidden, forget_bias=bias, dtype="float64")
        yield f"LSTM, forget bias {bias:g}", colour, "lstm", weights


# The memory task: one symbol to keep, then fillers to ignore

SYMBOLS, FILLERS = 8, 8
HIDDEN = {"rnn": 72, "lstm": 32}  # 6,992 and 6,536 weights
RATE, BATCH, GOOD = 0.01, 32, 0.99

CONTESTANTS = {
    "tanh RNN": ("rnn", BLUE),
    "LSTM, forget bias 1": ("lstm", ORANGE),
    "LSTM, patient": ("lstm", GREEN),
}


def memory(out: Path, quick: bool, seed: int) -> None:
    """Train each cell to name a symbol seen some steps ago; plot how often it is right."""
    distances, steps, runs = ((10, 30), 150, 1) if quick else ((10, 20, 50, 100, 200), 300, 3)
    figure, axes = chart(7.2, 3.8)
    print(f"memory: 1 of {SYMBOLS} symbols, at most {steps} updates of {BATCH} sequences")
    for place, (name, (_, colour)) in enumerate(CONTESTANTS.items()):
        means = []
        for distance in distances:
            results = [train_recall(name, distance, steps, seed + run) for run in range(runs)]
            right = [part for part, _ in results]
            means.append(np.mean(right))
            # A little apart, so that dots of two contestants don't hide each other.
            axes.plot([distance * 1.03 ** (place - 1)] * runs, right, "o", color=colour, alpha=0.5)
            each = ", ".join(f"{part:.0%} after {used} updates" for part, used in results)
            print(f"  {name}, {distance} steps: {each}")
        axes.plot(distances, means, color=colour, label=name)
    axes.axhline(1 / SYMBOLS, color=FAINT, linewidth=0.8, linestyle=":")
    axes.text(distances[0], 1 / SYMBOLS + 0.02, "guessing", color=INK, fontsize=8.5)
    axes.set(xscale="log", ylim=(0, 1.05), xlabel="steps between symbol and question")
    axes.set(ylabel="right on new sequences", xticks=distances, xticklabels=distances)
    axes.minorticks_off()
    axes.legend(frameon=False, fontsize=9, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1))
    report(save(figure, out / "memory.png"))


def train_recall(name: str, distance: int, steps: int, seed: int) -> tuple[float, int]:
    """Train one contestant. Returns how often it is right at the end, and the updates it took."""
    rng = np.random.default_rng(seed)
    cell = CONTESTANTS[name][0]
    weights, optimizer = recall_weights(rng, name, distance), None
    used, lately = 0, 0.0
    with TrainingDisplay(steps, title=f"{name}, {distance} steps") as display:
        while used < steps and lately < GOOD:
            x, symbols = recall_batch(rng, BATCH, distance)
            loss, right, changes = recall_gradients(cell, weights, x, symbols)
            changes, _ = clip_by_global_norm(changes, 1.0)
            weights, optimizer = adam(weights, changes, optimizer, RATE)
            lately = 0.95 * lately + 0.05 * right
            used += 1
            display.step(loss=loss, right=right)
    x, symbols = recall_batch(rng, 500, distance)
    logits, _, _ = recall_forward(cell, weights, x)
    return float(np.mean(logits.argmax(axis=1) == symbols)), used


def recall_batch(rng: np.random.Generator, n: int, distance: int) -> tuple[np.ndarray, np.ndarray]:
    """Sequences, one-hot (n, distance + 1, d): a symbol, then fillers. And the symbols (n,)."""
    ids = rng.integers(SYMBOLS, SYMBOLS + FILLERS, size=(n, distance + 1))
    ids[:, 0] = rng.integers(SYMBOLS, size=n)
    return np.eye(SYMBOLS + FILLERS, dtype=np.float32)[ids], ids[:, 0]


def recall_weights(rng: np.random.Generator, name: str, distance: int) -> Weights:
    """Fresh weights. A patient LSTM starts with gates that suit the distance."""
    cell = CONTESTANTS[name][0]
    d, m = SYMBOLS + FILLERS, HIDDEN[cell]
    limit = 1 / np.sqrt(m)
    if cell == "rnn":
        w_x, w_h = rng.uniform(-limit, limit, (d, m)), rng.uniform(-limit, limit, (m, m))
        b = np.zeros(m)
    else:
        w_x, w_h, b = lstm_parameters(rng, d, m)
    if name == "LSTM, patient":
        # Forget about one part in `distance` at each step, and let in as little of each filler.
        b[m : 2 * m] = np.log(distance)
        b[:m] = -np.log(distance)
    w_out, b_out = rng.uniform(-limit, limit, (m, SYMBOLS)), np.zeros(SYMBOLS)
    weights = {"w_x": w_x, "w_h": w_h, "b": b, "w_out": w_out, "b_out": b_out}
    return {key: array.astype(np.float32) for key, array in weights.items()}


def recall_forward(cell: str, weights: Weights, x: np.ndarray):
    """Scores of the symbols after the last step, (n, SYMBOLS); all states; the cell's cache."""
    zeros = np.zeros((len(x), HIDDEN[cell]), dtype=x.dtype)
    inner = weights["w_x"], weights["w_h"], weights["b"]
    if cell == "rnn":
        h, cache = rnn_forward(x, zeros, *inner)
    else:
        h, _, cache = lstm_forward(x, zeros, zeros, *inner)
    return h[:, -1] @ weights["w_out"] + weights["b_out"], h, cache


def recall_gradients(
    cell: str, weights: Weights, x: np.ndarray, symbols: np.ndarray
) -> tuple[float, float, Weights]:
    """The loss, the part that is right, and the gradients of all weights."""
    logits, h, cache = recall_forward(cell, weights, x)
    right = float(np.mean(logits.argmax(axis=1) == symbols))
    loss, dlogits = temporal_cross_entropy(logits[:, None], symbols[:, None])
    dlogits = dlogits[:, 0]  # (n, SYMBOLS)
    dh = np.zeros_like(h)
    dh[:, -1] = dlogits @ weights["w_out"].T  # only the last state is asked
    if cell == "rnn":
        _, _, dw_x, dw_h, db = rnn_backward(dh, cache)
    else:
        _, _, _, dw_x, dw_h, db = lstm_backward(dh, np.zeros_like(h[:, -1]), cache)
    dw_out, db_out = h[:, -1].T @ dlogits, dlogits.sum(axis=0)
    return loss, right, {"w_x": dw_x, "w_h": dw_h, "b": db, "w_out": dw_out, "b_out": db_out}


# A character model through its training

PRIME = "KING RICHARD:\n"
MOMENTS = (0, 30, 100, 300, 1000, 2500)


def samples(out: Path, quick: bool, seed: int) -> None:
    """Train a character model on Shakespeare; keep its bits and what it writes on the way."""
    print("samples: a character model on Shakespeare")
    moments, hidden, length = ((0, 20, 100), 64, 500) if quick else (MOMENTS, 128, 1000)
    text = load_shakespeare()
    train_ids, new = text.encode(text.train), new_pieces(text, length)
    model = CharLM(np.random.default_rng(seed), len(text.vocabulary), 32, hidden)
    bits, measured, state, written = [], [], None, []
    for steps in moments:
        if steps:
            history = train(model, train_ids, Config(steps=steps, decay=0.999), state)
            state = history["state"]
            bits += history["bits"]
        measured.append(float(np.mean([bits_per_character(model, piece) for piece in new])))
        heading = f"After {steps} updates, {measured[-1]:.2f} bits per character on new text"
        print(f"  {heading}")
        written.append(f"{heading}, temperature 0.8:\n\n{write(model, text, 0.8, seed)}")
    for heat in (0.2, 0.5, 1.2):
        written.append(f"The same, temperature {heat}:\n\n{write(model, text, heat, seed)}")
    out.mkdir(parents=True, exist_ok=True)
    (out / "samples.txt").write_text("\n\n--------\n\n".join(written) + "\n", encoding="utf-8")
    report(out / "samples.txt")
    report(save(bits_chart(bits, moments, measured, letter_bits(text, new)), out / "bits.png"))


def new_pieces(text: Text, length: int) -> list[np.ndarray]:
    """12 pieces from all over the plays kept from training: some are harder than others."""
    ids = text.encode(text.validation)
    return [ids[start : start + length] for start in np.arange(12) * (len(ids) // 12)]


def write(model: CharLM, text: Text, temperature: float, seed: int) -> str:
    """400 characters by the model, behind the name of a speaker."""
    rng = np.random.default_rng(seed)
    return PRIME + text.decode(sample(model, text.encode(PRIME), 400, temperature, rng))


def letter_bits(text: Text, pieces: list[np.ndarray]) -> float:
    """What a model needs that knows how often each character occurs, and nothing else."""
    counts = np.bincount(text.encode(text.train), minlength=len(text.vocabulary)) + 1
    return float(-np.log2(counts / counts.sum())[np.concatenate(pieces)].mean())


def bits_chart(bits: list[float], moments: tuple[int, ...], measured: list[float], letters: float):
    """The bits of each update's window, and those on new text."""
    figure, axes = chart(7.2, 3.8)
    axes.plot(bits, color=SKY, linewidth=0.8, label="each window, before its update")
    axes.plot(moments, measured, "o-", color=BLUE, label="new text")
    axes.axhline(letters, color=FAINT, linewidth=0.8, linestyle=":")
    axes.text(
        moments[-1], letters + 0.06, "letter frequencies alone", color=INK, fontsize=8.5, ha="right"
    )
    axes.set(xlabel="updates", ylabel="bits per character", ylim=(1.5, 6.5))
    axes.legend(frameon=False, fontsize=9)
    return figure


EXPERIMENTS = {"gradients": gradients, "memory": memory, "samples": samples}


def main(arguments: list[str]) -> int:
    """Run the experiments that are asked for; 2 if something is missing."""
    parser = new_parser("a3_recurrent", __doc__.splitlines()[0], "a short version, under a minute")
    return run_each(EXPERIMENTS, parser, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
