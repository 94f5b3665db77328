"""How the tests of exercise 7.6 check validation and training."""

import math

import numpy as np
import torch

from common.testing.checks import check_float, check_names_step, check_refused, check_unchanged
from common.testing.compare import assert_close, assert_equal, check, kind_of, unpack
from common.testing.remote.torch_modules import (
    load_parameters,
    parameters_of,
    seed_torch,
    stored_gradients,
)
from common.testing.remote.torch_objects import torch_generator
from tests.a7_minigpt.cases import (
    check_ids,
    check_same_weights,
    draw_model,
    draw_tokens,
    other_weights,
    spread_out,
)

# Adam divides by the size of a gradient: where that is almost 0, rounding errors grow.
RUN = 1e-6
# With a learning rate this small, weights don't change, and a loss identifies its windows.
STANDSTILL = {"max_lr": 1e-13, "min_lr": 0.0, "weight_decay": 0.0}
TINY = {"vocab_size": 5, "context_length": 4, "num_layers": 1, "num_heads": 2, "d_model": 4}
LISTS = {"step": int, "loss": float, "learning_rate": float}
VALIDATION_LISTS = {"validation_step": int, "validation_loss": float}


# estimate_loss


def losses_of(student, oracle, model, data, *, draws):
    """The losses of batches that get_batch draws. draws: how many, of what size, generator."""
    count, batch_size, generator = draws
    settings, drawn = model.settings, []
    for _ in range(count):
        drawn.append(
            student.training.get_batch(data, batch_size, settings["context_length"], generator)
        )
        for ids in unpack(drawn[-1], 2, "get_batch"):
            shape = batch_size, settings["context_length"]
            check_ids(ids, shape, settings["vocab_size"], "What get_batch gives")
    return [oracle.loss(settings, model.parameters, *batch) for batch in drawn]


def check_estimate(student, oracle, model, data, *, batch_size, batches, seed):
    """The mean over the batches of get_batch, without dropout; the model doesn't change."""
    estimate, generator = student.training.estimate_loss, torch_generator(student, seed)
    losses = losses_of(student, oracle, model, data, draws=(batches, batch_size, generator))
    module = model.on(student.model, dropout=0.5)
    for mode, given in ((True, data), (False, spread_out(data))):
        module.train(mode)
        loss = estimate(module, given, batch_size, batches, torch_generator(student, seed))
        check_float(loss, "what estimate_loss returns")
        situation = f"{batches} batches of {batch_size}"
        assert_close(loss, float(np.mean(losses)), f"the loss ({situation})", tolerance=1e-9)
        check(module.training is mode, "estimate_loss must leave the model in its mode.")
    check(not stored_gradients(module), "estimate_loss must not compute gradients.")
    check_same_weights(module, model.parameters, "estimate_loss")
    arguments = (module, data, batch_size, batches, torch_generator(student, seed))
    check_unchanged("estimate_loss", estimate, *arguments)


def check_estimate_refused(estimate, module, data, generator):
    """Texts without a window and sizes below 1. data has a single window."""
    check(estimate(module, data, 1, 1, generator) is not None, "estimate_loss returned None.")
    check_refused("a text without a window", estimate, module, data[:-1], 1, 1, generator)
    for sizes in ((0, 1), (-1, 1), (1, 0), (1, -1)):
        check_refused("a size below 1", estimate, module, data, *sizes, generator)


# train


def read_history(history, steps, validations):
    """The lists of a history, with an entry for each step and each validation."""
    check(isinstance(history, dict), f"train must return a dict, not {kind_of(history)}.")
    for names, count in ((LISTS, len(steps)), (VALIDATION_LISTS, len(validations))):
        for name, kind in names.items():
            check(name in history, f"The history has no entry {name}.")
            check(isinstance(history[name], list), f'history["{name}"] must be a list.')
            check(
                len(history[name]) == count,
                f'history["{name}"] must have one entry for each '
                f"{'validation' if name in VALIDATION_LISTS else 'step'}.",
                f"It has {len(history[name])} entries instead of {count}.",
            )
            check(
                all(type(entry) is kind for entry in history[name]),
                f'history["{name}"] must hold Python {kind.__name__}s.',
            )
    for name, right in (("step", steps), ("validation_step", validations)):
        assert_equal(list(history[name]), list(right), what=f'history["{name}"]')
    return {name: history[name] for name in (*LISTS, *VALIDATION_LISTS)}


def run_train(student, module, data, config, *, validation=None, start=0):
    """Train a module, and read its history. start: the step that a run resumes after."""
    made = student.training.TrainConfig(**config)
    history = student.training.train(module, data, made, validation)
    last, every = config.get("stop", config["steps"]), config.get("evaluate_every", 0)
    done = range(start + 1, last + 1)
    rated = [step for step in done if step == last or (every and step % every == 0)]
    return read_history(history, done, [] if validation is None else rated)


def expected_run(oracle, model, texts, config, *, validations):
    """The lists of a history and the last parameters. validations: the steps that have one."""
    settings = model.settings
    batch, held_out = ((ids[None, :-1], ids[None, 1:]) for ids in texts)
    right = oracle.Optimizer(model.parameters, config["max_lr"], config["weight_decay"])
    last = config.get("stop", config["steps"])
    wanted = {"loss": [], "learning_rate": [], "validation_loss": []}
    schedule = (config["max_lr"], config["warmup"], config["steps"], config["min_lr"])
    rates = oracle.learning_rates(*schedule)[:last]
    for step, rate in enumerate(rates, start=1):
        loss, gradients = oracle.loss_and_gradients(settings, right.values(), *batch)
        right.step(oracle.clipped(gradients, config["max_norm"])[0], rate)
        wanted["loss"].append(loss)
        wanted["learning_rate"].append(rate)
        if step in validations:
            wanted["validation_loss"].append(oracle.loss(settings, right.values(), *held_out))
    return wanted | {"validation_step": validations}, right.values()


def compare_run(history, module, right, situation):
    """Every loss and rate, and the parameters at the end."""
    wanted, weights = right
    rated = wanted.pop("validation_step")
    history = read_history(history, range(1, len(wanted["loss"]) + 1), rated)
    for name, values in wanted.items():
        what = f'history["{name}"] ({situation})'
        found = np.array(history[name])
        assert_close(found, np.array(values), what=what, axes=("entry",), tolerance=RUN)
    trained = parameters_of(module)
    for name, value in weights.items():
        assert_close(trained[name], value, what=f"{name} ({situation})", tolerance=RUN)
    check(module.training is False, "train must leave the model in evaluation mode.")


def check_windows_read(student, oracle, model, data, **config):
    """Each step reads the windows that get_batch draws from a generator with the config's seed."""
    draws = (
        config["grad_accum_steps"],
        config["batch_size"],
        torch_generator(student, config["seed"]),
    )
    steps = range(config["steps"])
    losses = [np.mean(losses_of(student, oracle, model, data, draws=draws)) for _ in steps]
    config |= STANDSTILL | {"warmup": 0}
    history = run_train(student, model.on(student.model), data, config)
    found, what = np.array(history["loss"]), 'history["loss"] (random windows)'
    assert_close(found, np.array(losses), what, axes=("step",), tolerance=1e-7)


def check_modes(student, rng, steps, seed):
    """train uses dropout whatever the mode was, and starts from its seed."""
    model = draw_model(rng, **TINY)
    data = draw_tokens(rng, TINY["vocab_size"], 30)
    config = {"steps": steps, "batch_size": 3, "warmup": 1, "seed": seed}
    runs = []
    for training in (True, False):
        module = model.on(student.model, dropout=0.5)
        module.train(training)
        seed_torch(student, int(training))  # earlier draws must not matter
        history = run_train(student, module, data, config)
        check(module.training is False, "train must leave the model in evaluation mode.")
        runs.append((history["loss"], module))
    (first, module), (again, other) = runs
    check(
        first == again and not other_weights(module, parameters_of(other)),
        "The same model, text and config must give the same run.",
        help="Seed PyTorch first, as the docstring says, and train in training mode.",
    )
    dry = run_train(student, model.on(student.model), data, config)
    check(
        abs(dry["loss"][0] - first[0]) > 1e-6,
        "The model is not in training mode while it is trained: dropout changes nothing.",
    )
    other = run_train(student, model.on(student.model), data, config | {"seed": seed + 1})
    check(other["loss"] != dry["loss"], "Another seed must give another run.")


def check_autocast_of_train(student, rng, seed):
    """With autocast, a run is rounded on the way: other weights, but about the same losses."""
    model = draw_model(rng, torch.float32, **TINY)
    data = draw_tokens(rng, TINY["vocab_size"], 30)
    config = {"steps": 2, "batch_size": 3, "warmup": 0, "seed": seed}
    plain, rounded = (model.on(student.model) for _ in "12")
    right = run_train(student, plain, data, config)["loss"]
    found = run_train(student, rounded, data, config | {"autocast": True})["loss"]
    off = max(abs(a - b) / b for a, b in zip(found, right, strict=True))
    check(off < 0.05, "With autocast, the losses of train are far from those without.")
    different = other_weights(rounded, parameters_of(plain))
    check(bool(different), "train doesn't pass autocast on: it has no effect.")


def check_validation_apart(student, rng, steps, seed):
    """Validations use the same windows each time, and don't affect training."""
    model = draw_model(rng, **TINY)
    data, validation = (draw_tokens(rng, TINY["vocab_size"], 40) for _ in "12")
    config = {"steps": steps, "batch_size": 2, "warmup": 1, "seed": seed, "evaluate_batches": 3}
    alone, watched = (model.on(student.model, dropout=0.4) for _ in "12")
    plain = run_train(student, alone, data, config)
    every = config | {"evaluate_every": 1}
    history = run_train(student, watched, data, every, validation=validation)
    check(
        plain["loss"] == history["loss"] and not other_weights(watched, parameters_of(alone)),
        "A validation changes the training: with and without one, losses or weights differ.",
        help="It needs a generator of its own, and must restore training mode.",
    )
    generator = torch_generator(student, seed)
    right = student.training.estimate_loss(watched, validation, 2, 3, generator)
    check_float(right, "what estimate_loss returns")
    last = history["validation_loss"][-1]
    assert_close(last, right, what="the last validation loss", tolerance=1e-9)
    frozen, still = model.on(student.model), every | STANDSTILL
    losses = run_train(student, frozen, data, still, validation=validation)["validation_loss"]
    spread = max(losses) - min(losses)
    check(spread < 1e-6, "Each validation must use the same windows.")


def check_train_refused(student, rng):
    """Losses that aren't finite, with the step; texts that are too short; data must not change."""
    model = draw_model(rng, **TINY)
    data = draw_tokens(rng, TINY["vocab_size"], 12)
    module, training = model.on(student.model), student.training
    # Finite at first, but one step of this size makes the weights overflow.
    config = {"steps": 4, "batch_size": 2, "warmup": 0, "max_lr": 1e200, "min_lr": 0.0}
    situation = "a loss that is not finite"
    large = training.TrainConfig(**config)
    check_names_step(check_refused(situation, training.train, module, data, large), 2)
    load_parameters(module, {name: p * math.nan for name, p in model.parameters.items()})
    usual = training.TrainConfig(**config | {"max_lr": 1e-3})
    check_names_step(check_refused(situation, training.train, module, data, usual), 1)
    load_parameters(module, model.parameters)
    short = data[: TINY["context_length"]]
    check_refused("a text without a window", training.train, module, short, usual)
    check_unchanged("train", training.train, module, data, usual)


# A small model on the plays. Right code with 16 seeds ended at 2.326 on average, with a standard
# deviation of 0.023 and 2.383 at most: the threshold is 5.5 deviations away. A bigram model gives
# 2.49, and the frequencies of the characters 3.32. A context of 16 would be faster, but then one of
# eight seeds ended at 2.55.
PLAYS = {"context_length": 32, "num_layers": 2, "num_heads": 4, "d_model": 64}
PLAYS_RUN = {"steps": 250, "batch_size": 32, "warmup": 20, "max_lr": 6e-3, "min_lr": 6e-4}
PLAYS_THRESHOLD = 2.45
READ = 600_000  # characters of the plays
# For the loss of the first batch: as for new models in 7.4, but with the text's own characters,
# which are fewer and repeat, and 1024 positions.
FIRST_TOLERANCE = 0.2


def encoded(text, characters):
    """A text as ids, computed by the judge. The plays are ASCII, whatever characters there are."""
    table = np.zeros(128, dtype=np.int64)
    for index, character in enumerate(characters):
        if character.isascii():
            table[ord(character)] = index
    return torch.from_numpy(table[np.frombuffer(text.encode("ascii"), dtype=np.uint8)])
