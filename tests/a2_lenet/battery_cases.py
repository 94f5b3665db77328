"""With what the battery calls the functions of assignment 2, by exercise."""

from common.testing.battery.battery_case import Case
from common.testing.compare import unpack
from tests.a2_lenet import cases, optimizer_cases
from tests.a2_lenet.cases import TINY

INNER = "forward and loss_and_gradients call it; its caches are the student's own"
EXEMPT = {"LeNet.forward_with_caches": INNER, "LeNet.backward": INNER}
TINY_MLP = {name: TINY[name] for name in ("image_size", "hidden_size", "num_classes")}
SHAPE = (2, 3, 4, 5)
RESHAPE = {"views": "a reshape; no docstring asks for a copy"}


def draw_images(student, rng):
    """Images or maps."""
    return (rng.normal(size=SHAPE),)


def backward_case(name, draw, dout_shape, exempt):
    """The case of a layer's backward pass."""

    def draw_pass(student, rng):
        result = getattr(student, f"{name}_forward")(*draw(student, rng))
        _, cache = unpack(result, 2, f"{name}_forward")
        return rng.normal(size=dout_shape), cache

    return Case(f"{name}_backward", "dout cache", draw_pass, exempt=exempt)


def layer_cases(name, inputs, draw, *, dout_shape, exempt=None):
    """The cases of a layer's forward pass and of its backward pass."""
    exempt = exempt or {}
    return (
        Case(f"{name}_forward", inputs, draw, returns=1, exempt=exempt),
        backward_case(name, draw, dout_shape, exempt),
    )


def network_cases(name, sizes):
    """The cases of a network's methods."""

    def new_network(student, rng):
        weights = cases.draw_weights(rng, sizes)
        return cases.make_model(getattr(student, name), rng, sizes, weights)

    return (
        Case(
            f"{name}.forward",
            "x",
            lambda student, rng: (cases.draw_images(rng, 3, sizes),),
            new_network,
        ),
        Case(
            f"{name}.loss_and_gradients",
            "x labels",
            lambda student, rng: cases.draw_batch(rng, 3, sizes),
            new_network,
        ),
    )


def step_case(name):
    """The case of an optimizer's step, from the state of an earlier one."""

    def draw_step(student, rng):
        arrays = [optimizer_cases.draw_arrays(rng, optimizer_cases.SHAPES) for _ in range(3)]
        result = getattr(student, name)(arrays[0], arrays[1], None, 0.1)
        _, state = unpack(result, 2, name)
        return arrays[0], arrays[2], state, 0.3

    return Case(name, "parameters gradients state learning_rate", draw_step, returns=1)


def draw_training(student, rng):
    """A model, its data and a config."""
    images, labels = cases.draw_batch(rng, 6, TINY)
    model = cases.make_model(student.LeNet, rng, TINY, cases.draw_weights(rng, TINY))
    data = student.Data(images, labels, images, labels)
    return model, data, student.TrainConfig(epochs=1, batch_size=4)


def draw_one_image(student, rng):
    """A model and an image."""
    model = cases.make_model(student.LeNet, rng, TINY, cases.draw_weights(rng, TINY))
    return model, cases.draw_images(rng, 1, TINY)[0]


CASES = {
    "2.1": [
        *layer_cases("relu", "x", draw_images, dout_shape=SHAPE),
        *layer_cases(
            "linear",
            "x w b",
            lambda student, rng: cases.draw_linear(rng, 4, 3, 5),
            dout_shape=(4, 5),
        ),
        *layer_cases("flatten", "x", draw_images, dout_shape=(2, 60), exempt=RESHAPE),
    ],
    "2.2": [
        Case(
            "softmax_cross_entropy",
            "logits labels",
            lambda student, rng: (rng.normal(size=(4, 3)), rng.integers(3, size=4)),
        )
    ],
    "2.3": [
        Case(
            "he_normal",
            "rng shape fan_in",
            lambda student, rng: (cases.generator(rng), (3, 4), 5),
        ),
        *network_cases("LeNet", TINY),
    ],
    "2.4": [step_case("sgd_momentum"), step_case("adam")],
    "2.5": [
        Case(
            "minibatches",
            "n batch_size rng",
            lambda student, rng: (40, 7, cases.generator(rng)),
        ),
        Case(
            "train",
            "model data config",
            draw_training,
            exempt={
                "model": "train changes its weights",
                "memory": "a second training starts from the weights of the first",
            },
        ),
    ],
    "2.6": [
        *network_cases("MLP", TINY_MLP),
        Case(
            "permute_pixels",
            "images rng",
            lambda student, rng: (rng.normal(size=SHAPE), cases.generator(rng)),
        ),
    ],
    "2.7": [
        Case(
            "receptive_field",
            "layers",
            lambda student, rng: (
                [(int(size), int(stride)) for size, stride in rng.integers(1, 9, size=(3, 2))],
            ),
            exempt={"differs": "layers can differ and have the same field"},
        ),
        Case("feature_maps", "model image", draw_one_image),
    ],
}
