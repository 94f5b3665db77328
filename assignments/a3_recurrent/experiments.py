"""The experiments of assignment 3: plots and text samples from your recurrent.py.

    python -m assignments.a3_recurrent.experiments                    # all three
    python -m assignments.a3_recurrent.experiments recall --quick     # one, in a short version

Given, not graded. gradients needs exercise 3.6, recall needs 3.1 to 3.5, samples needs 3.7.
"""

import sys
from pathlib import Path

import numpy as np

from assignments.a3_recurrent.recurrent import (
    CharLM,
    TrainConfig,
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
    """Norms of dh_T / dh_t against the distance T - t, at initialization."""
    steps, input_size, hidden_size = (50, 8, 24) if quick else (100, 16, 64)
    figure, axes = chart(7.2, 4.2)
    print(f"gradients: the norm of dh_T / dh_t, {hidden_size} units, at initialization")
    for label, color, cell, weights in initial_cells(input_size, hidden_size, seed):
        x = np.random.default_rng(seed).normal(size=(steps, input_size))
        state = (np.zeros(hidden_size),) * (1 if cell == "rnn" else 2)
        norms = gradient_norms_through_time(cell, x, state, weights)[::-1]  # by distance
        axes.plot(np.maximum(norms, 1e-30), color=color, label=label)
        shown = ", ".join(f"{norms[k]:.1e} over {k}" for k in (1, 10, steps // 2, steps))
        print(f"  {label}: {shown}")
    axes.set(yscale="log", ylim=(1e-14, 1e8))
    axes.set(xlabel="distance T - t in steps", ylabel="norm of dh_T / dh_t")
    axes.axhline(1, color=FAINT, linewidth=0.8, linestyle=":")
    axes.legend(frameon=False, fontsize=8.5, ncols=2, loc="upper left")
    report(save(figure, out / "gradients.png"))


def initial_cells(input_size: int, hidden_size: int, seed: int):
    """(label, color, cell, weights) of four RNNs, and of LSTMs with three forget biases."""
    rng = np.random.default_rng(seed)
    # Small inputs: large ones saturate tanh, and then nothing can explode.
    w_xh = 0.1 * rng.normal(size=(input_size, hidden_size)) / np.sqrt(input_size)
    w_hh = rng.normal(size=(hidden_size, hidden_size)) / np.sqrt(hidden_size)
    for label, color, recurrent in (
        ("gain 0.5", SKY, 0.5 * w_hh),
        ("gain 1", BLUE, w_hh),
        ("gain 2", RED, 2 * w_hh),
        ("orthogonal", INK, np.linalg.qr(w_hh)[0]),
    ):
        yield f"tanh RNN, {label}", color, "rnn", (w_xh, recurrent, np.zeros(hidden_size))
    for color, bias in ((PINK, 0.0), (ORANGE, 1.0), (GREEN, 5.0)):
        rng = np.random.default_rng(seed)
        weights = lstm_parameters(rng, input_size, hidden_size, forget_bias=bias, dtype="float64")
        yield f"LSTM, forget bias {bias:g}", color, "lstm", weights


# The recall task: remember one symbol, ignore the fillers after it

SYMBOLS, FILLERS = 8, 8
HIDDEN_SIZE = {"rnn": 72, "lstm": 32}  # 6,992 and 6,536 parameters
LEARNING_RATE, BATCH_SIZE, GOOD = 0.01, 32, 0.99

MODELS = {
    "tanh RNN": ("rnn", BLUE),
    "LSTM, forget bias 1": ("lstm", ORANGE),
    "LSTM, chrono init": ("lstm", GREEN),
}


def recall(out: Path, quick: bool, seed: int) -> None:
    """Train each model to recall a symbol from some steps ago; plot its accuracy."""
    distances, steps, runs = ((10, 30), 150, 1) if quick else ((10, 20, 50, 100, 200), 300, 3)
    figure, axes = chart(7.2, 3.8)
    print(f"recall: 1 of {SYMBOLS} symbols, at most {steps} updates of {BATCH_SIZE} sequences")
    for index, (name, (_, color)) in enumerate(MODELS.items()):
        means = []
        for distance in distances:
            results = [train_recall(name, distance, steps, seed + run) for run in range(runs)]
            accuracies = [accuracy for accuracy, _ in results]
            means.append(np.mean(accuracies))
            # Shifted a little, so that the dots of two models don't hide each other.
            shifted = [distance * 1.03 ** (index - 1)] * runs
            axes.plot(shifted, accuracies, "o", color=color, alpha=0.5)
            each = ", ".join(f"{accuracy:.0%} after {used} updates" for accuracy, used in results)
            print(f"  {name}, {distance} steps: {each}")
        axes.plot(distances, means, color=color, label=name)
    axes.axhline(1 / SYMBOLS, color=FAINT, linewidth=0.8, linestyle=":")
    axes.text(distances[0], 1 / SYMBOLS + 0.02, "guessing", color=INK, fontsize=8.5)
    axes.set(xscale="log", ylim=(0, 1.05), xlabel="steps between symbol and question")
    axes.set(ylabel="accuracy on new sequences", xticks=distances, xticklabels=distances)
    axes.minorticks_off()
    axes.legend(frameon=False, fontsize=9, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1))
    report(save(figure, out / "recall.png"))


def train_recall(name: str, distance: int, steps: int, seed: int) -> tuple[float, int]:
    """Train one model. Returns its final accuracy and the number of updates."""
    rng = np.random.default_rng(seed)
    cell = MODELS[name][0]
    weights, optimizer = recall_weights(rng, name, distance), None
    used, running = 0, 0.0  # updates, and the moving average of the accuracy
    with TrainingDisplay(steps, title=f"{name}, {distance} steps") as display:
        while used < steps and running < GOOD:
            x, symbols = recall_batch(rng, BATCH_SIZE, distance)
            loss, accuracy, changes = recall_gradients(cell, weights, x, symbols)
            changes, _ = clip_by_global_norm(changes, 1.0)
            weights, optimizer = adam(weights, changes, optimizer, LEARNING_RATE)
            running = 0.95 * running + 0.05 * accuracy
            used += 1
            display.step(loss=loss, accuracy=accuracy)
    x, symbols = recall_batch(rng, 500, distance)
    logits, _, _ = recall_forward(cell, weights, x)
    return float(np.mean(logits.argmax(axis=1) == symbols)), used


def recall_batch(rng: np.random.Generator, n: int, distance: int) -> tuple[np.ndarray, np.ndarray]:
    """One-hot sequences (n, distance + 1, d): a symbol, then fillers. And the symbols (n,)."""
    ids = rng.integers(SYMBOLS, SYMBOLS + FILLERS, size=(n, distance + 1))
    ids[:, 0] = rng.integers(SYMBOLS, size=n)
    return np.eye(SYMBOLS + FILLERS, dtype=np.float32)[ids], ids[:, 0]


def recall_weights(rng: np.random.Generator, name: str, distance: int) -> Weights:
    """Initial weights, with gate biases that suit the distance for chrono initialization."""
    cell = MODELS[name][0]
    d, m = SYMBOLS + FILLERS, HIDDEN_SIZE[cell]
    limit = 1 / np.sqrt(m)
    if cell == "rnn":
        w_x, w_h = rng.uniform(-limit, limit, (d, m)), rng.uniform(-limit, limit, (m, m))
        b = np.zeros(m)
    else:
        w_x, w_h, b = lstm_parameters(rng, d, m)
    if name == "LSTM, chrono init":
        # Each step forgets about 1 / distance of the cell, and lets in as little of each filler.
        b[m : 2 * m] = np.log(distance)
        b[:m] = -np.log(distance)
    w_out, b_out = rng.uniform(-limit, limit, (m, SYMBOLS)), np.zeros(SYMBOLS)
    weights = {"w_x": w_x, "w_h": w_h, "b": b, "w_out": w_out, "b_out": b_out}
    return {key: array.astype(np.float32) for key, array in weights.items()}


def recall_forward(cell: str, weights: Weights, x: np.ndarray):
    """The logits of the symbols after the last step (n, SYMBOLS), all hidden states, the cache."""
    zeros = np.zeros((len(x), HIDDEN_SIZE[cell]), dtype=x.dtype)
    recurrent = weights["w_x"], weights["w_h"], weights["b"]
    if cell == "rnn":
        h, cache = rnn_forward(x, zeros, *recurrent)
    else:
        h, _, cache = lstm_forward(x, zeros, zeros, *recurrent)
    return h[:, -1] @ weights["w_out"] + weights["b_out"], h, cache


def recall_gradients(
    cell: str, weights: Weights, x: np.ndarray, symbols: np.ndarray
) -> tuple[float, float, Weights]:
    """The loss, the accuracy, and the gradients of all weights."""
    logits, h, cache = recall_forward(cell, weights, x)
    accuracy = float(np.mean(logits.argmax(axis=1) == symbols))
    loss, dlogits = temporal_cross_entropy(logits[:, None], symbols[:, None])
    dlogits = dlogits[:, 0]  # (n, SYMBOLS)
    dh = np.zeros_like(h)
    dh[:, -1] = dlogits @ weights["w_out"].T  # the loss depends on the last state only
    if cell == "rnn":
        _, _, dw_x, dw_h, db = rnn_backward(dh, cache)
    else:
        _, _, _, dw_x, dw_h, db = lstm_backward(dh, np.zeros_like(h[:, -1]), cache)
    dw_out, db_out = h[:, -1].T @ dlogits, dlogits.sum(axis=0)
    return loss, accuracy, {"w_x": dw_x, "w_h": dw_h, "b": db, "w_out": dw_out, "b_out": db_out}


# A character-level language model during its training

PROMPT = "KING RICHARD:\n"
CHECKPOINTS = (0, 30, 100, 300, 1000, 2500)


def samples(out: Path, quick: bool, seed: int) -> None:
    """Train a language model on Shakespeare; record its bits and samples on the way."""
    print("samples: a character-level language model on Shakespeare")
    checkpoints = (0, 20, 100) if quick else CHECKPOINTS
    hidden_size, length = (64, 500) if quick else (128, 1000)
    text = load_shakespeare()
    train_ids, validation = text.encode(text.train), validation_pieces(text, length)
    model = CharLM(np.random.default_rng(seed), len(text.vocabulary), 32, hidden_size)
    bits, measured, state, written = [], [], None, []
    for steps in checkpoints:
        if steps:
            history = train(model, train_ids, TrainConfig(steps=steps, decay=0.999), state)
            state = history["state"]
            bits += history["bits"]
        measured.append(float(np.mean([bits_per_character(model, ids) for ids in validation])))
        heading = f"After {steps} updates, {measured[-1]:.2f} bits per character on validation text"
        print(f"  {heading}")
        written.append(f"{heading}, temperature 0.8:\n\n{write(model, text, 0.8, seed)}")
    for temperature in (0.2, 0.5, 1.2):
        sampled = write(model, text, temperature, seed)
        written.append(f"The same, temperature {temperature}:\n\n{sampled}")
    out.mkdir(parents=True, exist_ok=True)
    (out / "samples.txt").write_text("\n\n--------\n\n".join(written) + "\n", encoding="utf-8")
    report(out / "samples.txt")
    unigram = unigram_bits(text, validation)
    report(save(bits_chart(bits, checkpoints, measured, unigram), out / "bits.png"))


def validation_pieces(text: Text, length: int) -> list[np.ndarray]:
    """12 pieces from all over the held-out plays: some are harder than others."""
    ids = text.encode(text.validation)
    return [ids[start : start + length] for start in np.arange(12) * (len(ids) // 12)]


def write(model: CharLM, text: Text, temperature: float, seed: int) -> str:
    """400 characters by the model, after the name of a speaker."""
    rng = np.random.default_rng(seed)
    return PROMPT + text.decode(sample(model, text.encode(PROMPT), 400, temperature, rng))


def unigram_bits(text: Text, pieces: list[np.ndarray]) -> float:
    """Bits per character of a unigram model, which only knows how often each character occurs."""
    counts = np.bincount(text.encode(text.train), minlength=len(text.vocabulary)) + 1
    return float(-np.log2(counts / counts.sum())[np.concatenate(pieces)].mean())


def bits_chart(
    bits: list[float], checkpoints: tuple[int, ...], measured: list[float], unigram: float
):
    """The bits of each update's window, and those on validation text."""
    figure, axes = chart(7.2, 3.8)
    updates = range(1, len(bits) + 1)
    axes.plot(updates, bits, color=SKY, linewidth=0.8, label="each window, before its update")
    axes.plot(checkpoints, measured, "o-", color=BLUE, label="validation text")
    axes.axhline(unigram, color=FAINT, linewidth=0.8, linestyle=":")
    axes.text(checkpoints[-1], unigram + 0.06, "unigram model", color=INK, fontsize=8.5, ha="right")
    axes.set(xlabel="updates", ylabel="bits per character", ylim=(1.5, 6.5))
    axes.legend(frameon=False, fontsize=9)
    return figure


EXPERIMENTS = {"gradients": gradients, "recall": recall, "samples": samples}


def main(arguments: list[str]) -> int:
    """Run the named experiments, or all of them; return 2 if something is missing."""
    parser = new_parser("a3_recurrent", __doc__.splitlines()[0], "a short version, under a minute")
    return run_each(EXPERIMENTS, parser, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
