"""Stand-in for the lab of assignment 3: a character-level LSTM on PyTorch.

It is written on PyTorch, which the exercises don't allow.
"""

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

Arrays = dict[str, np.ndarray]
Tensors = dict[str, torch.Tensor]


def gradient_norms_through_time(
    cell: str, x: np.ndarray, state: tuple[np.ndarray, ...], weights: tuple[np.ndarray, ...]
) -> np.ndarray:
    """The spectral norm of dh_t / dh_s for s = 0 .. t: by the Jacobians of single steps."""
    w_x, w_h, b = (torch.as_tensor(array) for array in weights)
    size = len(state[0])
    row = torch.as_tensor(np.concatenate(state))  # h, and for the LSTM c behind it

    def step(row: torch.Tensor, projected: torch.Tensor) -> torch.Tensor:
        z = projected + row[:size] @ w_h
        if cell == "rnn":
            return z.tanh()
        i, f, o = z[: 3 * size].sigmoid().split(size)
        c = f * row[size:] + i * z[3 * size :].tanh()
        return torch.cat([o * c.tanh(), c])

    single_steps = []
    for projected in torch.as_tensor(x) @ w_x + b:
        single_steps.append(torch.autograd.functional.jacobian(step, (row, projected))[0])
        row = step(row, projected)
    whole = torch.eye(len(row), dtype=row.dtype)
    norms = [torch.tensor(1.0)]
    for jacobian in reversed(single_steps):
        whole = whole @ jacobian
        norms.append(torch.linalg.matrix_norm(whole[:size, :size], 2))
    return np.array([float(norm) for norm in reversed(norms)], dtype=x.dtype)


class CharLM:
    """The character-level language model of the handout, with its parameters as arrays."""

    def __init__(
        self,
        rng: np.random.Generator,
        vocab_size: int,
        embedding_size: int,
        hidden_size: int,
        dtype: str = "float32",
    ) -> None:
        """Initialize the parameters."""
        limit = hidden_size**-0.5
        shapes = {
            "w_x": (embedding_size, 4 * hidden_size),
            "w_h": (hidden_size, 4 * hidden_size),
            "w_out": (hidden_size, vocab_size),
        }
        self.parameters: Arrays = {
            name: rng.uniform(-limit, limit, shape).astype(dtype) for name, shape in shapes.items()
        }
        self.parameters["embedding"] = rng.normal(size=(vocab_size, embedding_size)).astype(dtype)
        self.parameters["b"] = np.repeat([0, 1, 0, 0], hidden_size).astype(dtype)
        self.parameters["b_out"] = np.zeros(vocab_size, dtype)

    def forward(self, ids: np.ndarray, state: Any = None) -> tuple[np.ndarray, Any]:
        """The logits of the id after each id, and the state after the last one."""
        with torch.no_grad():
            logits, state = read(self.tensors(), ids, state)
        return logits.numpy(), state

    def loss_and_gradients(
        self, ids: np.ndarray, targets: np.ndarray, state: Any = None
    ) -> tuple[float, Arrays, Any]:
        """The mean cross-entropy in nats, its gradients, and the state after the last id."""
        tensors = {name: tensor.requires_grad_() for name, tensor in self.tensors().items()}
        logits, state = read(tensors, ids, state)
        loss = F.cross_entropy(logits.flatten(0, 1), torch.as_tensor(targets).flatten())
        found = torch.autograd.grad(loss, list(tensors.values()))
        gradients = {name: part.numpy() for name, part in zip(tensors, found, strict=True)}
        return loss.item(), gradients, state

    def tensors(self) -> Tensors:
        """The current parameters."""
        return {name: torch.as_tensor(array) for name, array in self.parameters.items()}


def read(p: Tensors, ids: np.ndarray, state: Any) -> tuple[torch.Tensor, tuple[np.ndarray, ...]]:
    """Embedding, PyTorch's LSTM with its blocks in the order i, f, g, o, and a linear layer."""

    def in_its_order(weights: torch.Tensor) -> torch.Tensor:
        i, f, o, g = weights.chunk(4, dim=-1)
        return torch.cat([i, f, g, o], dim=-1).T if weights.ndim == 2 else torch.cat([i, f, g, o])

    vectors = F.embedding(torch.as_tensor(ids), p["embedding"])
    zeros = torch.zeros(1, len(ids), len(p["w_out"]), dtype=vectors.dtype)
    hx = (zeros, zeros) if state is None else tuple(torch.as_tensor(part)[None] for part in state)
    bias = in_its_order(p["b"])
    weights = [in_its_order(p["w_x"]), in_its_order(p["w_h"]), bias, torch.zeros_like(bias)]
    out, h, c = torch.lstm(vectors, hx, weights, True, 1, 0.0, False, False, True)
    return out @ p["w_out"] + p["b_out"], (h[0].detach().numpy(), c[0].detach().numpy())


def train(model: Any, text_ids: np.ndarray, config: Any) -> dict[str, list[float]]:
    """Train a model by truncated backpropagation through time, with clipping and Adam."""
    streams = torch.as_tensor(text_ids)
    count = (len(text_ids) - 1) // (config.batch_size * config.context_length)
    used = config.batch_size * count * config.context_length
    inputs, targets = (
        part.reshape(config.batch_size, count, config.context_length).unbind(1)
        for part in (streams[:used], streams[1 : used + 1])
    )
    kept: list[tuple[float, float]] = []
    means: dict[str, torch.Tensor] = {}
    squares: dict[str, torch.Tensor] = {}
    state = None
    for step in range(1, config.steps + 1):
        window = (step - 1) % count
        loss, found, state = model.loss_and_gradients(
            inputs[window].numpy(), targets[window].numpy(), state if window else None
        )
        gradients = {name: torch.as_tensor(part) for name, part in found.items()}
        norm = float(torch.stack([part.norm() for part in gradients.values()]).norm())
        rate, moved = config.learning_rate * config.decay ** (step - 1), {}
        for name, gradient in gradients.items():
            gradient = gradient * min(1.0, config.max_norm / norm)
            zeros = torch.zeros_like(gradient)
            means[name] = means.get(name, zeros).lerp(gradient, 0.1)
            squares[name] = squares.get(name, zeros).lerp(gradient.square(), 0.001)
            size = (squares[name] / (1 - 0.999**step)).sqrt() + 1e-8
            change = means[name] / (1 - 0.9**step) / size
            moved[name] = (torch.as_tensor(model.parameters[name]) - rate * change).numpy()
        model.parameters.update(moved)
        kept.append((loss, norm))
    return {"loss": [loss for loss, _ in kept], "norm": [norm for _, norm in kept]}


def bits_per_character(model: Any, ids: np.ndarray) -> float:
    """The cross-entropy of a text in bits per character."""
    logits = torch.as_tensor(model.forward(ids[None, :-1])[0][0])
    return float(F.cross_entropy(logits, torch.as_tensor(ids[1:]))) / np.log(2)


def sample(
    model: Any, prompt: np.ndarray, length: int, temperature: float, rng: np.random.Generator
) -> np.ndarray:
    """Sample a continuation of the prompt with the Gumbel-max trick.

    The argmax of logits + temperature * Gumbel noise is a draw from softmax(logits / temperature).
    """
    chosen, state, written = prompt[None], None, []
    for _ in range(length):
        logits, state = model.forward(chosen, state)
        noise = temperature * rng.gumbel(size=logits.shape[-1]) if temperature else 0.0
        chosen = (logits[:, -1:] + noise).argmax(axis=-1)
        written.append(chosen.item())
    return np.array(written, dtype=np.int64)
