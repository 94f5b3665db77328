"""Stand-in for the lab of assignment 2: LeNet and Adam on PyTorch.

It is written on PyTorch, which the exercises don't allow.
"""

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

Arrays = dict[str, np.ndarray]


class LeNet:
    """The network of the handout, with its parameters as arrays."""

    def __init__(
        self,
        rng: np.random.Generator,
        image_size: int = 28,
        filters: tuple[int, int] = (16, 32),
        kernel_size: int = 5,
        hidden_size: int = 64,
        num_classes: int = 10,
        dtype: str = "float32",
    ) -> None:
        """Draw the initial weights."""
        self.image_size = image_size
        self.dtype = np.dtype(dtype)
        side = ((image_size - kernel_size + 1) // 2 - kernel_size + 1) // 2
        layers = {
            "conv1": torch.nn.Conv2d(1, filters[0], kernel_size),
            "conv2": torch.nn.Conv2d(filters[0], filters[1], kernel_size),
            "linear1": torch.nn.Linear(filters[1] * side**2, hidden_size),
            "linear2": torch.nn.Linear(hidden_size, num_classes),
        }
        self.parameters: Arrays = {}
        for name, layer in layers.items():
            shape = layer.weight.shape if name.startswith("conv") else layer.weight.T.shape
            spread = np.sqrt(2 / layer.weight[0].numel())
            self.parameters[f"{name}.w"] = rng.normal(0, spread, tuple(shape)).astype(dtype)
            self.parameters[f"{name}.b"] = np.zeros(len(layer.bias), dtype)

    def forward(self, x: np.ndarray) -> np.ndarray:
        """The logits."""
        return run_layers(x, self.tensors())[-1].numpy()

    def loss_and_gradients(self, x: np.ndarray, labels: np.ndarray) -> tuple[float, Arrays]:
        """The mean loss of a batch, and its gradient for each name in `parameters`."""
        tensors = {name: tensor.requires_grad_() for name, tensor in self.tensors().items()}
        loss = F.cross_entropy(run_layers(x, tensors)[-1], torch.as_tensor(labels))
        gradients = torch.autograd.grad(loss, list(tensors.values()))
        return loss.item(), {
            name: gradient.numpy() for name, gradient in zip(tensors, gradients, strict=True)
        }

    def tensors(self) -> dict[str, torch.Tensor]:
        """The current parameters as tensors."""
        return {name: torch.as_tensor(array) for name, array in self.parameters.items()}


def run_layers(x: np.ndarray, p: dict[str, torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """The feature maps of both convolutions, and the logits."""
    images = torch.as_tensor(x).to(p["conv1.w"].dtype)
    first = F.relu(F.conv2d(images, p["conv1.w"], p["conv1.b"]))
    second = F.relu(F.conv2d(F.max_pool2d(first, 2), p["conv2.w"], p["conv2.b"]))
    flat = F.max_pool2d(second, 2).flatten(1)
    hidden = F.relu(F.linear(flat, p["linear1.w"].T, p["linear1.b"]))
    return first, second, F.linear(hidden, p["linear2.w"].T, p["linear2.b"])


def adam(
    parameters: Arrays,
    gradients: Arrays,
    state: Any,
    learning_rate: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
) -> tuple[Arrays, Any]:
    """One step of Adam, for each array separately."""
    t, first, second = state or (0, {}, {})
    t, first, second, new = t + 1, dict(first), dict(second), {}
    for name, array in parameters.items():
        gradient, zeros = torch.as_tensor(gradients[name]), torch.zeros(array.shape)
        m, v = (moments.get(name, zeros.to(gradient)) for moments in (first, second))
        first[name] = m.lerp(gradient, 1 - beta1)
        second[name] = v.lerp(gradient.square(), 1 - beta2)
        m_hat, v_hat = first[name] / (1 - beta1**t), second[name] / (1 - beta2**t)
        change = m_hat / (v_hat.sqrt() + epsilon)
        new[name] = (torch.as_tensor(array) - learning_rate * change).numpy()
    return new, (t, first, second)


def feature_maps(model: Any, image: np.ndarray) -> Arrays:
    """The feature maps of one image, after each convolution and its relu."""
    tensors = {name: torch.as_tensor(array) for name, array in model.parameters.items()}
    first, second, _ = run_layers(image[None], tensors)
    return {"conv1": first[0].numpy(), "conv2": second[0].numpy()}
