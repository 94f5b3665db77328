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
    """The character model of the handout, with its parameters as arrays."""

    def __init__(
        self,
        rng: np.random.Generator,
        vocabulary: int,
        embedding: int,
        hidden: int,
        dtype: str = "float32",
    ) -> None:
        """Draw the first weights."""
        limit = hidden**-0.5
        shapes = {
            "w_x": (embedding, 4 * hidden),
            "w_h": (hidden, 4 * hidden),
            "w_out": (hidden, vocabulary),
        }
        self.parameters: Arrays = {
            name: rng.uniform(-limit, limit, shape).astype(dtype) for name, shape in shapes.items()
        }
        self.parameters["embedding"] = rng.normal(size=(vocabulary, embedding)).astype(dtype)
        self.parameters["b"] = np.repeat([0, 1, 0, 0], hidden).astype(dtype)
        self.parameters["b_out"] = np.zeros(vocabulary, dtype)

    def forward(self, ids: np.ndarray, state: Any = None) -> tuple[np.ndarray, Any]:
        """The logits of what follows each id, and the state after the last one."""
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
        """The parameters of the moment."""
        return {name: torch.as_tensor(array) for name, array in self.parameters.items()}


def read(p: Tensors, ids: np.ndarray, state: Any) -> tuple[torch.Tensor, tuple[np.ndarray, ...]]:
    """Embedding, PyTorch's LSTM, dense layer. Its order of the blocks is i, f, g, o."""

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
    count = (len(text_ids) - 1) // (config.batch * config.window)
    used = config.batch * count * config.window
    inputs, targets = (
        part.reshape(config.batch, count, config.window).unbind(1)
        for part in (streams[:used], streams[1 : used + 1])
    )
    kept: list[tuple[float, float]] = []
    means: dict[str, torch.Tensor] = {}
    squares: dict[str, torch.Tensor] = {}
    state = None
    for step in range(config.steps):
        window = step % count
        loss, found, state = model.loss_and_gradients(
            inputs[window].numpy(), targets[window].numpy(), state if window else None
        )
        gradients = {name: torch.as_tensor(part) for name, part in found.items()}
        norm = float(torch.stack([part.norm() for part in gradients.values()]).norm())
        rate, moved = config.learning_rate * config.decay**step, {}
        for name, gradient in gradients.items():
            gradient = gradient * min(1.0, config.max_norm / norm)
            zeros = torch.zeros_like(gradient)
            means[name] = means.get(name, zeros).lerp(gradient, 0.1)
            squares[name] = squares.get(name, zeros).lerp(gradient.square(), 0.001)
            size = (squares[name] / (1 - 0.999 ** (step + 1))).sqrt() + 1e-8
            change = means[name] / (1 - 0.9 ** (step + 1)) / size
            moved[name] = (torch.as_tensor(model.parameters[name]) - rate * change).numpy()
        model.parameters.update(moved)
        kept.append((loss, norm))
    return {"loss": [loss for loss, _ in kept], "norm": [norm for _, norm in kept]}


def bits_per_character(model: Any, ids: np.ndarray) -> float:
    """How many bits the model needs for each character of a text but the first."""
    scores = torch.as_tensor(model.forward(ids[None, :-1])[0][0])
    return float(F.cross_entropy(scores, torch.as_tensor(ids[1:]))) / np.log(2)


def sample(
    model: Any, prime: np.ndarray, length: int, temperature: float, rng: np.random.Generator
) -> np.ndarray:
    """What the model writes after prime: the largest score wins, after noise of Gumbel's kind.

    Noise that grows with the temperature lets each character win as often as softmax says.
    """
    chosen, state, written = prime[None], None, []
    for _ in range(length):
        scores, state = model.forward(chosen, state)
        noise = temperature * rng.gumbel(size=scores.shape[-1]) if temperature else 0.0
        chosen = (scores[:, -1:] + noise).argmax(axis=-1)
        written.append(chosen.item())
    return np.array(written, dtype=np.int64)
