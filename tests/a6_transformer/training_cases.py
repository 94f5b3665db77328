"""How the tests of exercises 6.6 and 6.7 check the loss and the training of a Transformer."""

import itertools
import math
from contextlib import contextmanager

import numpy as np
import torch

from common.testing.checks import check_float, check_names_step, check_refused
from common.testing.compare import assert_close, check, kind_of
from common.testing.feedback.failure import is_students, kind_in_words
from common.testing.remote.torch_modules import load_parameters, parameters_of, seed_torch, vjp
from tests.a6_transformer.cases import new_transformer
from tests.a6_transformer.model_cases import EOS, draw_ids, draw_model

UPSTREAM = 1.7  # the gradient of a loss
BETAS, EPSILON = (0.9, 0.98), 1e-9  # of Adam, as the docstring of train has them
# Adam divides by the size of a gradient: of one that is nearly 0, this leaves the rounding errors.
RUN = 1e-7
# Gradients that are clipped to this are about as large as Adam's epsilon, which shows only then.
TINY_NORM = 1e-7
# With a learning rate this small, parameters don't change, and a loss identifies its pairs.
STANDSTILL = 1e-9
SAME_LOSS = 1e-6
TINY = {"source_vocab_size": 8, "d_model": 4, "d_ff": 5, "num_decoder_layers": 1}


def draw_pairs(rng, lengths):
    """A source and a target of each of these pairs of lengths."""
    sources, targets = zip(*lengths, strict=True)
    source = draw_ids(rng, 8, sources)
    target = draw_ids(rng, 7, [t + 2 for t in targets], begin=True)
    for row, length in zip(target, targets, strict=True):
        row[length + 1] = EOS
    return source, target


def draw_targets(rng, vocab_size, lengths, width):
    """Ids from 1 on, and padding after each sequence; a length of 0 is all padding."""
    targets = torch.zeros(len(lengths), width, dtype=torch.int64)
    for row, length in zip(targets, lengths, strict=True):
        row[:length] = torch.from_numpy(rng.integers(1, vocab_size, size=length))
    return targets


def loss_vjp(loss, logits, *more):
    """The result of vjp for a call of the loss, under UPSTREAM."""
    return vjp(loss, (logits, *more), [torch.tensor(UPSTREAM, dtype=logits.dtype)])


def compare_loss(result, expected, situation):
    """Loss and gradient are those of F.cross_entropy. result: of loss_vjp."""
    outputs, gradients, _ = result
    loss, gradient = expected
    assert_close(outputs[0], loss, what=f"the loss ({situation})")
    what = f"the gradient of the logits ({situation})"
    assert_close(gradients[0], UPSTREAM * gradient, what=what, axes=("sequence", "position", "id"))


def compare_with_zero(result, logits):
    """Where all targets are padding, the loss is 0, and so is its gradient."""
    outputs, gradients, _ = result
    zero = torch.zeros((), dtype=logits.dtype)
    assert_close(outputs[0], zero, what="the loss (only padding)")
    what = "the gradient of the logits (only padding)"
    assert_close(gradients[0], torch.zeros_like(logits), what=what)


def check_loss_refuses(loss, logits, targets):
    """Invalid values of label_smoothing raise ValueError; 0 and one just below 1 don't."""
    for smoothing in (0.0, 0.999):
        check(loss(logits, targets, smoothing) is not None, "label_smoothing_loss returned None.")
    for smoothing in (-0.1, 1.0, 1.5):
        check_refused("label_smoothing outside [0, 1)", loss, logits, targets, smoothing)
    check_refused("a list instead of logits", loss, logits.tolist(), targets)
    check_refused("a list instead of targets", loss, logits, targets.tolist())


def rate_of(step, d_model, warmup):
    """The learning rate in another form: the smaller of two is 1 over the larger of two."""
    return 1 / math.sqrt(d_model * max(step, warmup**3 / step**2))


def read_history(history, steps):
    """The two lists of a history as arrays, each with a float for each step."""
    check(isinstance(history, dict), f"train must return a dict, not {kind_of(history)}.")
    found = {}
    for name in ("loss", "learning_rate"):
        check(name in history, f'The history must have an entry "{name}".')
        check(isinstance(history[name], list), f'history["{name}"] must be a list.')
        check(
            len(history[name]) == steps,
            f'history["{name}"] must have one entry for each step.',
            f"It has {len(history[name])} entries after {steps} steps.",
        )
        check(
            all(isinstance(entry, float) for entry in history[name]),
            f'history["{name}"] must hold Python floats.',
        )
        found[name] = np.array(history[name])
    return found


def compare_rate(rate, step, d_model, warmup):
    """The result of noam_rate is right."""
    check_float(rate, "the learning rate")
    assert_close(rate, rate_of(step, d_model, warmup), what="the learning rate")


def expected_run(oracle, model, pairs, config):
    """History and last parameters when all pairs are in each batch: Adam by definition."""
    now = {name: p.clone() for name, p in model.parameters.items()}
    mean, square = ({name: torch.zeros_like(p) for name, p in now.items()} for _ in range(2))
    history = {"learning_rate": [], "loss": []}
    for step in range(1, config["steps"] + 1):
        rate = config["factor"] * rate_of(step, model.settings["d_model"], config["warmup"])
        smoothing = config["label_smoothing"]
        loss, gradients = oracle.loss_and_gradients(model.settings, now, *pairs, smoothing)
        history["learning_rate"] += [rate]
        history["loss"] += [loss]
        norm = math.sqrt(sum(float((g * g).sum()) for g in gradients.values()))
        cut = min(1.0, config["max_norm"] / (norm + 1e-6))
        for name, gradient in gradients.items():
            for moment, beta, value in (
                (mean, BETAS[0], cut * gradient),
                (square, BETAS[1], (cut * gradient) ** 2),
            ):
                moment[name] = beta * moment[name] + (1 - beta) * value
            large = (square[name] / (1 - BETAS[1] ** step)) ** 0.5 + EPSILON
            now[name] = now[name] - rate * (mean[name] / (1 - BETAS[0] ** step)) / large
    return history, now


def compare_run(history, module, expected, situation):
    """Every loss and learning rate, and the final parameters, are those of a run by definition."""
    wanted_history, last = expected
    found = read_history(history, len(wanted_history["loss"]))
    for name, wanted in wanted_history.items():
        what = f'history["{name}"] ({situation})'
        assert_close(
            found[name], np.array(wanted), what=what, axes=("training step",), tolerance=RUN
        )
    trained = parameters_of(module)
    for name, wanted in last.items():
        what = f"{name} after the last step ({situation})"
        assert_close(trained[name], wanted, what=what, tolerance=RUN)


@contextmanager
def only_padding_added(side):
    """What fails in here works without columns of padding beyond the learned positions."""
    try:
        yield
    except Exception as error:
        if not is_students(error):
            raise
        check(
            False,
            f"train fails if the last columns of the {side} hold only padding.",
            f"Without these columns it works; with them it raises {kind_in_words(error)}:\n{error}",
            help=f"Remove them from each batch: trim does it, for the {side} too.",
        )


def draw_distinct_losses(oracle, rng, lengths, sizes):
    """A model, pairs, and the loss of every batch of these sizes: no two of a size are equal."""
    while True:
        model = draw_model(rng, **TINY)
        source, target = draw_pairs(rng, lengths)
        losses = losses_of_batches(oracle, model, (source, target), sizes)
        ordered = [sorted(of_size.values()) for of_size in losses.values()]
        gaps = [b - a for values in ordered for a, b in itertools.pairwise(values)]
        if min(gaps) > 10 * SAME_LOSS:
            return model, source, target, losses


def losses_of_batches(oracle, model, pairs, sizes):
    """For each size, the loss of each choice of pairs: the mean over all real positions."""
    alone = []
    for pair in zip(*(ids.split(1) for ids in pairs), strict=True):
        loss, _ = oracle.loss_and_gradients(model.settings, model.parameters, *pair, 0.1)
        alone.append((loss, int((pair[1][:, 1:] > 0).sum())))
    found = {size: {} for size in sizes}
    for size in sizes:
        for batch in itertools.combinations(range(len(alone)), size):
            positions = sum(alone[row][1] for row in batch)
            found[size][batch] = sum(alone[row][0] * alone[row][1] for row in batch) / positions
    return found


def batches_of(student, case, size, epochs, *, seed):
    """Which pairs were in each batch of each epoch, inferred from the losses."""
    model, source, target, losses = case
    losses, per_epoch = losses[size], len(source) // size
    steps = epochs * per_epoch
    config = student.training.TrainConfig(
        steps=steps, batch_size=size, factor=STANDSTILL, seed=seed
    )
    history = student.training.train(new_transformer(student, model), source, target, config)
    found = []
    for loss in read_history(history, steps)["loss"]:
        nearest = min(losses, key=lambda batch: abs(losses[batch] - loss))
        check(
            abs(losses[nearest] - loss) < SAME_LOSS,
            "A loss is not that of any batch of the right size.",
            f"It is {loss:.6f}, for {size} of {len(source)} pairs.",
            "The loss is the mean over all real positions of the batch, before the update.",
        )
        found.append(nearest)
    return [found[start : start + per_epoch] for start in range(0, len(found), per_epoch)]


def check_each_pair_once(epochs):
    """No pair comes twice in an epoch; pairs left over at the end of an epoch are not used."""
    for batches in epochs:
        used = [row for batch in batches for row in batch]
        check(
            len(set(used)) == len(used),
            "A pair comes twice in one epoch.",
            f"The batches of the epoch hold the pairs {batches}.",
            "Shuffle once per epoch; skip the pairs at its end that don't fill a batch.",
        )


def check_orders(student, case, seeds):
    """Batches of one pair: a new order in each epoch, another one for another seed."""
    # There are at least 7 pairs. Three orders are the same by chance in 1 of 2e7 runs.
    first, *later = batches_of(student, case, 1, 3, seed=seeds[0])
    check(
        any(order != first for order in later),
        "The pairs must come in a new random order in each epoch.",
    )
    others = [batches_of(student, case, 1, 1, seed=seed)[0] for seed in seeds[1:]]
    check(any(order != first for order in others), "Another seed must give another order.")
    again = batches_of(student, case, 1, 1, seed=seeds[0])[0]
    check(again == first, "The same seed must give the same order.")


def check_modes(student, oracle, rng):
    """train uses dropout whatever the mode was, starts from its seed, ends in evaluation mode."""
    model, (source, target) = draw_model(rng, **TINY), draw_pairs(rng, [(2, 3), (3, 1), (1, 2)])
    config = {"steps": 3, "batch_size": 2, "seed": 5}
    loss, _ = oracle.loss_and_gradients(model.settings, model.parameters, source, target, 0.1)
    runs = []
    for training in (True, False):
        module = new_transformer(student, model, dropout=0.5)
        module.train(training)
        seed_torch(student, int(training))  # earlier random numbers must not matter
        history = student.training.train(
            module, source, target, student.training.TrainConfig(**config)
        )
        check(module.training is False, "train must leave the model in evaluation mode.")
        runs.append((read_history(history, 3)["loss"], parameters_of(module)))
    (first, weights), (again, others) = runs
    same = np.array_equal(first, again) and all(torch.equal(weights[n], others[n]) for n in weights)
    check(
        same,
        "The same model, pairs and config must give the same run.",
        help="Seed PyTorch first, as the docstring says, and train in training mode.",
    )
    module = new_transformer(student, model, dropout=0.5)
    all_pairs = student.training.TrainConfig(**config | {"batch_size": 3})
    whole = read_history(student.training.train(module, source, target, all_pairs), 3)
    check(
        abs(whole["loss"][0] - loss) > 1e-6,
        "The model must be in training mode while it is trained: dropout had no effect.",
    )


def check_not_finite(student, rng):
    """A loss that is not finite ends the training with a ValueError that names the step."""
    model, pairs = draw_model(rng, **TINY), draw_pairs(rng, [(2, 1), (1, 3)])
    # Finite at first, but one step of this size makes the weights overflow.
    config = {"steps": 1, "batch_size": 2, "factor": 1e200}
    module = new_transformer(student, model)
    read_history(student.training.train(module, *pairs, student.training.TrainConfig(**config)), 1)
    module = new_transformer(student, model)
    situation = "a loss that is not finite"
    large = student.training.TrainConfig(**config | {"steps": 4})
    check_names_step(check_refused(situation, student.training.train, module, *pairs, large), 2)
    load_parameters(module, {name: p * math.nan for name, p in model.parameters.items()})
    usual = student.training.TrainConfig(steps=4, batch_size=2)
    check_names_step(check_refused(situation, student.training.train, module, *pairs, usual), 1)
    source, target = pairs
    load_parameters(module, model.parameters)
    check_refused(
        "fewer targets than sources", student.training.train, module, source, target[:1], usual
    )
    check_refused(
        "lists instead of pairs",
        student.training.train,
        module,
        source.tolist(),
        target.tolist(),
        usual,
    )
