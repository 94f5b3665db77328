"""With what the battery calls the functions of assignment 3, by exercise."""

import numpy as np

from common.testing.battery.battery_case import Case
from tests.a3_recurrent import cases
from tests.a3_recurrent.cases import LAYERS
from tests.a3_recurrent.model_cases import draw_parameters, new_model


def layer_cases(layer, x_shape, m, *, masked=False):
    """The cases of a layer's two passes."""
    inputs, outputs, _ = LAYERS[layer]

    def draw(student, rng):
        mask = (cases.draw_mask(rng, *x_shape[:2]),) if masked else ()
        return (*cases.draw_inputs(rng, layer, x_shape, m), *mask)

    def draw_pass(student, rng):
        arguments = draw(student, rng)
        result = getattr(student, f"{layer}_forward")(*arguments)
        return (
            *cases.draw_upstream(rng, layer, arguments),
            cases.cache_of(layer, result),
        )

    upstream = " ".join(f"d{name}" for name in outputs)
    return (
        Case(f"{layer}_forward", " ".join((*inputs, "mask")), draw, returns=len(outputs)),
        Case(f"{layer}_backward", f"{upstream} cache", draw_pass),
    )


def draw_ids(student, rng):
    """Ids and a table."""
    return rng.integers(0, 4, size=(2, 3)), rng.normal(size=(4, 2))


def draw_embedding_pass(student, rng):
    """A gradient, and the cache of an embedding."""
    result = student.embedding_forward(*draw_ids(student, rng))
    return rng.normal(size=(2, 3, 2)), cases.unpack(result, 2, "embedding_forward")[1]


def draw_loss(student, rng):
    """Logits, targets and a mask."""
    mask = np.array([[True, False], [True, True], [False, True]])
    return rng.normal(size=(3, 2, 4)), rng.integers(0, 4, size=(3, 2)), mask


def draw_truncated(student, rng):
    """The arguments of truncated_bptt."""
    (x, *others), (dh,) = cases.draw_with_upstream(rng, "rnn", (2, 5, 3), 4)
    return x, dh, *others, 2


def norms_case(kind):
    """The case of the gradients' norms of a cell."""

    def draw(student, rng):
        return kind, *cases.draw_cell(rng, kind, (3, 2), 4)

    return Case("gradient_norms_through_time", "cell x state weights", draw)


def new_char_lm(student, rng):
    """A language model."""
    return new_model(student, draw_parameters(rng, 5, 2, 3))


def draw_texts(student, rng):
    """Ids, targets and a state."""
    ids, targets = rng.integers(0, 5, size=(2, 2, 4))
    return ids, targets, tuple(rng.normal(size=(2, 3)) for _ in range(2))


def draw_training(student, rng):
    """A model, a text and a config."""
    config = student.TrainConfig(steps=2, batch_size=2, context_length=4)
    return new_char_lm(student, rng), rng.integers(0, 5, size=27), config


CASES = {
    "3.1": [
        *layer_cases("rnn_step", (2, 3), 4),
        *layer_cases("rnn", (3, 4, 2), 4),
        *layer_cases("rnn", (3, 4, 2), 4, masked=True),
    ],
    "3.2": [
        Case(
            "lstm_parameters",
            "rng d m",
            lambda student, rng: (cases.new_generator(rng), 3, 2),
        ),
        *layer_cases("lstm_step", (2, 3), 2),
        *layer_cases("lstm", (3, 4, 2), 3),
        *layer_cases("lstm", (3, 4, 2), 3, masked=True),
    ],
    "3.3": [*layer_cases("gru_step", (2, 3), 2)],
    "3.4": [
        Case("embedding_forward", "ids table", draw_ids, returns=1),
        Case("embedding_backward", "dout cache", draw_embedding_pass),
        Case("temporal_cross_entropy", "logits targets mask", draw_loss),
    ],
    "3.5": [
        *(
            Case(
                "clip_by_global_norm",
                "gradients max_norm",
                lambda student, rng, max_norm=max_norm: (
                    {"w": rng.normal(size=(3, 4)), "b": rng.normal(size=5)},
                    max_norm,
                ),
                exempt={
                    "views": "gradients that aren't clipped are unchanged, so they may be the same"
                },
            )
            for max_norm in (0.5, 1e4)
        ),
        Case(
            "make_windows",
            "ids batch_size context_length",
            lambda student, rng: (rng.integers(0, 99, size=25), 3, 4),
            exempt={"views": "reshapes and transposes; no docstring asks for a copy"},
        ),
        Case("truncated_bptt", "x dh h0 w_xh w_hh b_h context_length", draw_truncated),
    ],
    "3.6": [norms_case("rnn"), norms_case("lstm")],
    "3.7": [
        Case(
            "CharLM.forward",
            "ids state",
            lambda student, rng: draw_texts(student, rng)[::2],
            new_char_lm,
        ),
        Case("CharLM.loss_and_gradients", "ids targets state", draw_texts, new_char_lm),
        Case(
            "train",
            "model text_ids config",
            draw_training,
            exempt={
                "model": "train changes its parameters",
                "memory": "a second training starts from the weights of the first",
            },
        ),
        Case(
            "bits_per_character",
            "model ids",
            lambda student, rng: (new_char_lm(student, rng), rng.integers(0, 5, size=9)),
        ),
        Case(
            "sample",
            "model prompt length temperature rng",
            lambda student, rng: (
                new_char_lm(student, rng),
                rng.integers(0, 5, size=3),
                40,
                1e3,
                cases.new_generator(rng),
            ),
        ),
    ],
}
