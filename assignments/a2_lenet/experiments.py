"""Given: trains your networks and draws what they learned.

    python -m assignments.a2_lenet.experiments            # everything, into figures/
    python -m assignments.a2_lenet.experiments --quick    # the same on fewer images
    python -m assignments.a2_lenet.experiments curves shuffle

It runs your own code and is not graded. The last 500 of the 4,000 training images are the
validation set, which chooses the best weights. The 1,000 test images are used once, at the end.
"""

import argparse
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from common.data import load_mnist
from common.training.experiments import add_prerequisites, load_code, new_parser, read_options, run
from common.training.plots import BLUE, FAINT, FONT, INK, ORANGE, PAPER, save, tint

VALIDATION = 500  # of the 4,000 training images
WORST = 12  # images that are drawn
PIXELS = ("ordinary", "shuffled")


class Study:
    """What the experiments have in common: your code, the images, the trained networks."""

    def __init__(self, lenet: ModuleType, out: Path, quick: bool, epochs: int, seed: int) -> None:
        self.lenet, self.out, self.seed = lenet, out, seed
        self.config = lenet.TrainConfig(epochs=epochs, seed=seed)
        self.mnist = load_mnist()
        last = len(self.mnist.train_images) - VALIDATION
        self.training, self.validation = slice(0, 1500 if quick else last), slice(last, None)
        self.runs = {}

    def arranged(self, images: np.ndarray, pixels: str) -> np.ndarray:
        """The images with ordinary pixels, or with one permutation of them."""
        if pixels == "ordinary":
            return images
        return self.lenet.permute_pixels(images, np.random.default_rng(self.seed))

    def data(self, pixels: str) -> object:
        """Training and validation images."""
        images, labels = self.arranged(self.mnist.train_images, pixels), self.mnist.train_labels
        train, validate = self.training, self.validation
        return self.lenet.Data(images[train], labels[train], images[validate], labels[validate])

    def untrained(self, kind: str) -> object:
        """A network with its initial weights."""
        return getattr(self.lenet, kind)(np.random.default_rng(self.seed))

    def trained(self, kind: str, pixels: str = "ordinary") -> tuple[object, dict]:
        """A trained network and its history. Each network is trained once."""
        if (kind, pixels) not in self.runs:
            data, model = self.data(pixels), self.untrained(kind)
            count = sum(array.size for array in model.parameters.values())
            print(
                f"{kind} with {count:,} parameters, {pixels} pixels: "
                f"{self.config.epochs} epochs over {len(data.train_images):,} images",
                flush=True,
            )
            history = self.lenet.train(model, data, self.config)
            self.runs[kind, pixels] = model, history
        return self.runs[kind, pixels]

    def save(self, figure: Figure, name: str) -> None:
        """Write a figure and print its path."""
        print(f"written: {save(figure, self.out / f'{name}.png')}\n", flush=True)


def figure_of(width: float, height: float, title: str) -> Figure:
    """An empty figure of width x height inches."""
    figure = Figure(figsize=(width, height), facecolor=PAPER, layout="constrained")
    figure.suptitle(title, color=INK, fontfamily=FONT, fontsize=11)
    return figure


def show(axes: object, image: np.ndarray, title: str = "", **style: object) -> None:
    """One small image without axes."""
    axes.imshow(image, **style)
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_color(tint(FAINT, 0.5))
    axes.set_title(title, fontsize=8, color=INK, fontfamily=FONT)


def curves(study: Study) -> None:
    """Learning curves: loss and accuracy of the LeNet."""
    _, history = study.trained("LeNet")
    losses, epochs = history["step_loss"], len(history["loss"])
    ends = np.arange(1, epochs + 1)
    figure = figure_of(9, 3.4, "LeNet: learning curves")
    left, right = figure.subplots(1, 2)
    steps = np.arange(1, len(losses) + 1) * epochs / len(losses)
    left.plot(steps, losses, color=tint(FAINT, 0.4), linewidth=0.8, label="each mini-batch")
    left.set(ylabel="loss", yscale="log")
    right.set(ylabel="accuracy")
    for name, label, color in (("", "training", BLUE), ("validation_", "validation", ORANGE)):
        for axes, what in ((left, "loss"), (right, "accuracy")):
            axes.plot(ends, history[name + what], "o-", color=color, markersize=4, label=label)
    for axes in (left, right):
        axes.set(xlabel="epoch", xticks=ends, xlim=(0, epochs + 0.3))
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=9)
    print("epoch  rate     loss    accuracy  validation loss  accuracy")
    for epoch in range(epochs):
        print(
            f"{epoch + 1:5}  {history['learning_rate'][epoch]:.5f}  {history['loss'][epoch]:.4f}  "
            f"{history['accuracy'][epoch]:8.4f}  {history['validation_loss'][epoch]:15.4f}  "
            f"{history['validation_accuracy'][epoch]:8.4f}"
        )
    study.save(figure, "curves")


def kernels(study: Study) -> None:
    """The kernels of the first layer, before and after training, on one scale."""
    model, _ = study.trained("LeNet")
    before, after = (m.parameters["conv1.w"][:, 0] for m in (study.untrained("LeNet"), model))
    limit = max(np.abs(before).max(), np.abs(after).max())
    figure = figure_of(9, 4.9, "first-layer kernels: brown is below 0, white is 0, green above")
    half = len(after) // 2
    grid = figure.subplots(4, half)
    for kernel in range(2 * half):
        row, column = divmod(kernel, half)
        for block, (name, values) in enumerate((("before", before), ("after", after))):
            axes = grid[2 * block + row, column]
            style = {"cmap": "BrBG", "vmin": -limit, "vmax": limit}
            show(axes, values[kernel], f"{name}, {kernel}", **style)
    change = np.linalg.norm(after - before) / np.linalg.norm(before)
    print(f"Training changed the kernels by {change:.2f} of their initial norm.")
    study.save(figure, "kernels")


def maps(study: Study) -> None:
    """The feature maps of both convolutions for one test image."""
    model, _ = study.trained("LeNet")
    image = study.mnist.test_images[3]  # a three
    found = study.lenet.feature_maps(model, image)
    fields = {
        name: study.lenet.receptive_field(layers)[0]
        for name, layers in (("conv1", [(5, 1)]), ("conv2", [(5, 1), (2, 2), (5, 1)]))
    }
    figure = figure_of(9, 6.6, "an image, and its feature maps after each convolution and relu")
    above, below = figure.subfigures(2, 1, height_ratios=[1, 1.6])
    grid = above.subplots(2, 9)
    show(grid[0, 0], image[0], "image", cmap="Greys")
    grid[1, 0].set_axis_off()
    cells = [*grid[:, 1:].flat, *below.subplots(4, 8).flat]
    names = [(name, index) for name in found for index in range(len(found[name]))]
    for axes, (name, index) in zip(cells, names, strict=True):
        # One scale per layer, so that a map of zeros stays white.
        style = {"cmap": "Greys", "vmin": 0, "vmax": float(found[name].max())}
        show(axes, found[name][index], f"{name}, {index}", **style)
    for name, array in found.items():
        dead = int((array.max(axis=(1, 2)) == 0).sum())
        print(
            f"{name}: {array.shape}, receptive field {fields[name]} x {fields[name]}, "
            f"{(array == 0).mean():.0%} of the activations are 0, {dead} filters are dead here"
        )
    study.save(figure, "maps")


def confusion(study: Study) -> None:
    """The confusion matrix of the LeNet on the test images."""
    model, _ = study.trained("LeNet")
    predictions = study.lenet.predict(model, study.mnist.test_images)
    counts = np.zeros((10, 10), dtype=int)
    np.add.at(counts, (study.mnist.test_labels, predictions), 1)
    wrong = counts - np.diag(np.diag(counts))
    right = int(np.trace(counts))
    figure = figure_of(5.4, 5.6, f"{right} of {counts.sum():,} test images are right")
    axes = figure.subplots()
    axes.imshow(wrong, cmap="Oranges", vmin=0, vmax=max(wrong.max(), 1) * 1.4)
    for (row, column), count in np.ndenumerate(counts):
        color = FAINT if row == column else INK
        axes.text(column, row, count or "", ha="center", va="center", fontsize=9, color=color)
    axes.set(xticks=range(10), yticks=range(10), xlabel="prediction", ylabel="label")
    print(f"test accuracy: {right / counts.sum():.3f}. The most frequent errors:")
    for index in np.argsort(-wrong, axis=None, kind="stable")[:3]:
        label, prediction = divmod(int(index), 10)
        print(f"  {label} read as {prediction}: {wrong[label, prediction]} times")
    study.save(figure, "confusion")


def mistakes(study: Study) -> None:
    """The test images with the highest loss."""
    model, _ = study.trained("LeNet")
    images, labels = study.mnist.test_images, study.mnist.test_labels
    logits = np.concatenate([model.forward(part) for part in np.array_split(images, 10)])
    losses = np.array(
        [
            study.lenet.softmax_cross_entropy(logits[i : i + 1], labels[i : i + 1])[0]
            for i in range(len(labels))
        ]
    )
    worst = np.argsort(-losses, kind="stable")[:WORST]
    figure = figure_of(8, 3.7, "the test images with the highest loss")
    for axes, i in zip(figure.subplots(2, WORST // 2).flat, worst, strict=True):
        title = f"{labels[i]} read as {logits[i].argmax()}\nloss {losses[i]:.1f}"
        show(axes, images[i, 0], title, cmap="Greys")
    share = losses[worst].sum() / losses.sum()
    print(f"These {WORST} images contribute {share:.0%} of the total loss of all {len(labels):,}.")
    study.save(figure, "mistakes")


def shuffle(study: Study) -> None:
    """LeNet and MLP on ordinary images, and on images with shuffled pixels."""
    figure = figure_of(6.4, 3.6, "error rate on the test images")
    axes = figure.subplots()
    lines = []
    for position, kind in enumerate(("LeNet", "MLP")):
        for side, (pixels, color) in enumerate(zip(PIXELS, (BLUE, ORANGE), strict=True)):
            model, _ = study.trained(kind, pixels)
            images = study.arranged(study.mnist.test_images, pixels)
            loss, accuracy = study.lenet.evaluate(model, images, study.mnist.test_labels)
            lines.append(f"{kind:7}  {pixels:8}  {accuracy:8.3f}  {loss:.3f}")
            label = f"{pixels} pixels" if position == 0 else None
            x, wrong = position + 0.38 * side - 0.19, 1 - accuracy
            axes.bar(x, wrong, width=0.34, color=color, label=label)
            axes.text(x, wrong, f"{wrong:.1%}", ha="center", va="bottom", fontsize=9)
    axes.set(xticks=[0, 1], xticklabels=["LeNet", "MLP"], ylim=(0, axes.get_ylim()[1] * 1.15))
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9, ncols=2, loc="upper center")
    print("network  pixels    accuracy  loss", *lines, sep="\n")
    study.save(figure, "shuffle")


EXPERIMENTS = {
    "curves": curves,
    "kernels": kernels,
    "maps": maps,
    "confusion": confusion,
    "mistakes": mistakes,
    "shuffle": shuffle,
}


def read_settings(arguments: list[str]) -> argparse.Namespace:
    """The options of the command line."""
    about = "Train your networks and draw what they learned."
    parser = new_parser("a2_lenet", about, "2 epochs over 1,500 images")
    parser.add_argument("--epochs", type=int, help="how many (5, or 2 with --quick)")
    add_prerequisites(parser, 1)
    options = read_options(parser, EXPERIMENTS, arguments)
    if options.epochs is not None and options.epochs < 1:
        parser.error("--epochs must be at least 1")
    options.epochs = options.epochs or (2 if options.quick else 5)
    return options


def main(arguments: list[str]) -> int:
    """Run the requested experiments. Returns 2 if something is missing."""
    options = read_settings(arguments)

    def work() -> None:
        standins = ["a1_convolution"] if options.prerequisites == "standin" else []
        lenet = load_code("lenet", "a2_lenet", standins)
        study = Study(lenet, options.out, options.quick, options.epochs, options.seed)
        for name in options.names:
            EXPERIMENTS[name](study)

    return run(work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
