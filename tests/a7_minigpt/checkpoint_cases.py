"""How the tests of exercise 7.6 check that a training can be stopped and resumed."""

import json

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

from common.testing.checks import check_refused
from common.testing.compare import assert_close, assert_equal, check
from common.testing.remote.scratch_files import scratch_bytes, scratch_path, write_scratch
from common.testing.remote.torch_modules import parameters_of, seed_torch, step_with_gradients
from common.testing.remote.torch_objects import torch_generator
from tests.a7_minigpt.cases import draw_model, draw_tokens, first_of, other_weights
from tests.a7_minigpt.optimizer_cases import check_is_optimizer, draw_gradients
from tests.a7_minigpt.training_cases import TINY, run_train

LIMIT = 10_000_000  # bytes of a checkpoint; that of a small model has some thousands


class Run:
    """A run of the student's code: a model, its optimizer, and a generator in use."""

    def __init__(self, student, model, seed):
        self.training = student.training
        self.module = model.on(student.model, dropout=0.3)
        self.names = tuple(model.parameters)
        self.module.train()
        optimizer = student.training.configure_optimizer(self.module, 0.01, 0.1)
        self.optimizer = check_is_optimizer(optimizer)
        self.generator = torch_generator(student, seed)
        self.training.get_batch(torch.arange(9), 2, 3, self.generator)

    def step(self, gradients):
        step_with_gradients(self.module, self.optimizer, gradients)

    def save(self, path, step):
        self.training.save_checkpoint(path, self.module, self.optimizer, step, self.generator)

    def load(self, path):
        return self.training.load_checkpoint(path, self.module, self.optimizer, self.generator)

    def refuses(self, situation, path):
        arguments = (path, self.module, self.optimizer, self.generator)
        message = check_refused(situation, self.training.load_checkpoint, *arguments)
        check(
            path in message,
            "The ValueError of load_checkpoint must have the path in its message.",
            f"The message is: {message}",
        )

    def future(self, tokens, gradients):
        """What this run does next: dropout, windows, and two steps of the optimizer."""
        logits = first_of(self.module(tokens))  # in training mode, so that dropout draws
        drawn = self.generator.get_state()
        self.step(gradients)
        self.step(gradients)
        weights = parameters_of(self.module)
        kept = {name: weights[name] for name in self.names}
        return {"dropout": logits, "the generator": drawn} | kept


def compare_futures(found, wanted, situation):
    """The same to the last bit, in every part."""
    for name, right in wanted.items():
        check(
            isinstance(found[name], torch.Tensor) and torch.equal(found[name], right),
            f"{situation}, {name} continues differently.",
            help="Everything that the docstring lists must be saved and restored.",
        )


def read_tensors(content):
    """The tensors of a file, by the judge's own reader."""
    try:
        return load(content)
    except (SafetensorError, ValueError, KeyError) as error:
        check(False, "A checkpoint must be a file that safetensors can read.", str(error))


def check_round_trip(student, rng, seed, step, **settings):
    """A checkpoint restores weights, optimizer, step, generator, and PyTorch's random state."""
    model, other = (draw_model(rng, **TINY | settings) for _ in "12")
    tokens = draw_tokens(rng, model.settings["vocab_size"], 3, model.settings["context_length"])
    path = scratch_path(student, "checkpoint.safetensors")
    write_scratch(student, path, b"what was there before, and is longer" * 5000)
    gradients = [draw_gradients(rng, model) for _ in range(3)]
    run = Run(student, model, seed)
    run.step(gradients[0])
    run.step(gradients[1])
    seed_torch(student, seed + 1)
    saved = parameters_of(run.module)
    run.save(path, step)
    tensors = read_tensors(scratch_bytes(student, path, LIMIT)).values()
    for name in model.parameters:
        value = saved[name]
        there = any(t.shape == value.shape and torch.equal(t.to(value), value) for t in tensors)
        check(there, f"The checkpoint doesn't hold the values of {name}.")
    check(not other_weights(run.module, saved), "save_checkpoint must not change the weights.")
    wanted = run.future(tokens, gradients[2])
    # Into a run with another history, and into a new one.
    for steps in (1, 0):
        again = Run(student, other, seed + 5)
        for _ in range(steps):
            again.step(gradients[0])
        seed_torch(student, seed + 9)
        assert_equal(again.load(path), step, what="the step of load_checkpoint")
        loaded = parameters_of(again.module)
        for name in model.parameters:
            what = f"{name} after load_checkpoint"
            assert_close(loaded[name], saved[name], what, tolerance=0.0)
        found = again.future(tokens, gradients[2])
        compare_futures(found, wanted, "After load_checkpoint")


def damaged(content, parameters):
    """Files that aren't a checkpoint of a model with these parameters, each with a description."""
    tensors, size = load(content), int.from_bytes(content[:8], "little")
    metadata = json.loads(bytes(content[8 : 8 + size])).get("__metadata__")
    table = parameters["token_embedding.weight"]
    others = {
        name: value
        for name, value in tensors.items()
        if value.shape != table.shape or not torch.equal(value.to(table), table)
    }
    renamed = {f"other.{name}": value for name, value in tensors.items()}
    return {
        "an empty file": b"",
        "a file that is cut off in its header": content[:50],
        "a file that is cut off at its end": content[:-40],
        "a file that isn't safetensors": b"\x93NUMPY" + bytes(200),
        "a header that is larger than the file": (2**60).to_bytes(8, "little") + content[8:],
        "a file without one of the parameters": save(others, metadata),
        "a file with other names": save(renamed, metadata),
        "a file of something else": save({"weight": torch.ones(2, 3)}),
    }


def check_refused_files(student, rng, seed):
    """Unusable files raise ValueError with their path, and change nothing."""
    model = draw_model(rng, **TINY)
    tokens = draw_tokens(rng, TINY["vocab_size"], 2, TINY["context_length"])
    gradients = [draw_gradients(rng, model) for _ in range(2)]
    path = scratch_path(student, "whole.safetensors")
    saved = draw_model(rng, **TINY)
    Run(student, saved, seed).save(path, 4)
    whole = scratch_bytes(student, path, LIMIT)
    read_tensors(whole)
    files = damaged(whole, saved.parameters)
    for name, size in (("context_length", 5), ("vocab_size", 6), ("num_layers", 2), ("d_model", 6)):
        wrong = scratch_path(student, f"{name}.safetensors")
        changed = draw_model(rng, **TINY | {name: size})
        Run(student, changed, seed).save(wrong, 4)
        files[f"the checkpoint of a model with another {name}"] = wrong
    files["a missing file"] = scratch_path(student, "missing.safetensors")
    run = Run(student, model, seed + 1)
    run.step(gradients[0])
    twin = Run(student, model, seed + 1)
    twin.step(gradients[0])
    seed_torch(student, seed + 2)
    for situation, content in files.items():
        file = content
        if isinstance(content, bytes):
            file = scratch_path(student, "damaged.safetensors")
            write_scratch(student, file, content)
        run.refuses(situation, file)
    found = run.future(tokens, gradients[1])
    seed_torch(student, seed + 2)
    wanted = twin.future(tokens, gradients[1])
    compare_futures(found, wanted, "After a file that load_checkpoint rejects")
    check(run.load(path) == 4, "After that, load_checkpoint must still read a valid file.")


def check_resume(student, rng, *, steps, stop, seed, **settings):
    """Stopped and resumed, a run gives the same numbers, bit for bit, with dropout."""
    model, other = (draw_model(rng, **TINY | settings) for _ in "12")
    data, validation = (draw_tokens(rng, model.settings["vocab_size"], 40) for _ in "12")
    config = {"steps": steps, "batch_size": 2, "grad_accum_steps": 2, "warmup": 2, "seed": seed}
    config |= {"evaluate_every": 2, "evaluate_batches": 2, "max_lr": 1e-2, "min_lr": 1e-3}
    whole = model.on(student.model, dropout=0.3)
    right = run_train(student, whole, data, config, validation=validation)
    path = scratch_path(student, "resume.safetensors")
    first, second = model.on(student.model, dropout=0.3), other.on(student.model, dropout=0.3)
    some = config | {"checkpoint": path}
    begun = run_train(student, first, data, some | {"stop": stop}, validation=validation)
    seed_torch(student, seed + 3)
    some |= {"resume": True}
    resumed = run_train(student, second, data, some, validation=validation, start=stop)
    for name in ("loss", "learning_rate"):
        check(
            begun[name] + resumed[name] == right[name],
            f'Stopped and resumed, history["{name}"] is not that of an uninterrupted run.',
            f"expected {right[name]}, got {begun[name]} and then {resumed[name]}",
        )
    late = len(resumed["validation_loss"])
    check(
        resumed["validation_loss"] == right["validation_loss"][-late:],
        "Resumed, a validation loss is not that of an uninterrupted run.",
    )
    different = other_weights(second, parameters_of(whole))
    check(
        not different,
        "Stopped and resumed, the weights at the end are not those of an uninterrupted run.",
        f"They differ in {', '.join(different)}.",
    )
    # A run that resumes at its last step, or later, does nothing.
    for last in ({}, {"stop": stop}):
        module = other.on(student.model, dropout=0.3)
        run_train(student, module, data, some | last, start=steps)
        check(module.training is False, "train must leave the model in evaluation mode.")
        check(
            not other_weights(module, parameters_of(second)),
            "A run that resumes at its last step must end with the checkpoint's weights.",
        )


def check_saves(student, rng, seed):
    """A file after every save_every steps and after the last, and none without a name.

    Runs that fail in step 2, because their weights overflow, show what was saved before.
    """
    model, training = draw_model(rng, **TINY), student.training
    data = draw_tokens(rng, TINY["vocab_size"], 20)
    broken = {
        "steps": 4,
        "batch_size": 2,
        "warmup": 0,
        "max_lr": 1e200,
        "min_lr": 0.0,
        "seed": seed,
    }
    for every, there in ((0, False), (1, True), (2, False)):
        path = scratch_path(student, f"every{every}.safetensors")
        config = training.TrainConfig(**broken, checkpoint=path, save_every=every)
        situation = "a loss that is not finite"
        check_refused(situation, training.train, model.on(student.model), data, config)
        run = Run(student, draw_model(rng, **TINY), seed)
        if there:
            assert_equal(run.load(path), 1, what="the step of the checkpoint of a broken run")
        else:
            run.refuses("a checkpoint that is due later", path)
    missing = scratch_path(student, "missing.safetensors")
    config = training.TrainConfig(**broken, checkpoint=missing, resume=True)
    check_refused("a missing checkpoint", training.train, model.on(student.model), data, config)
    path = scratch_path(student, "last.safetensors")
    config = broken | {"max_lr": 1e-3, "checkpoint": path, "save_every": 3}
    module = model.on(student.model)
    run_train(student, module, data, config)
    run = Run(student, draw_model(rng, **TINY), seed)
    assert_equal(run.load(path), 4, what="the step of the last checkpoint")
    different = other_weights(run.module, parameters_of(module))
    check(not different, "The last checkpoint must hold the weights after the last step.")
