"""Layers token by token; a Jacobian shows how many layers are enough."""

from functools import partial

from torch.autograd.functional import jacobian


def run_layer(
    kind: str, x: Tensor, weights: tuple[Tensor, ...] = (), dilation: int = 1
) -> tuple[Tensor, int, int]:
    """One layer, with its products counted."""
    check_floats(x)
    if dilation < 1:
        raise ValueError(f"dilation must be at least 1, got {dilation}")
    counter = MatmulCounter()
    n, d = x.shape
    if kind == "recurrent":
        out = x.new_zeros(0, d)
        state = x.new_zeros(1, d)
        for position in range(n):
            state = sum(counter.matmul((x[[position]], weights[0]), (state, weights[1]))).tanh()
            out = torch.cat([out, state])
    elif kind == "convolution":
        (w,) = weights
        wide = torch.cat([x.new_zeros(len(w) * dilation, d), x])
        # One product of a wide matrix with a tall one: the k windows side by side.
        windows = [wide[len(w) * dilation - j * dilation :][:n] for j in range(len(w))]
        (out,) = counter.matmul((torch.cat(windows, dim=1), w.reshape(-1, d)))
    elif kind == "attention":
        scores = counter.matmul((x / math.sqrt(d), x.T))
        out = counter.matmul((scores[0].softmax(dim=1), x))[0]
    else:
        raise ValueError(f"unknown kind {kind!r}")
    return out, counter.multiplications, counter.sequential_steps


def measure(kind: str, n: int, d: int, k: int = 3) -> dict[str, int]:
    """Counted on one layer; the whole Jacobian of the last output shows when a stack is enough."""
    check_layer(kind, n, d, k)
    numbers = torch.Generator().manual_seed(1)

    def draw(*shape: int) -> Tensor:
        return torch.randn(shape, generator=numbers, dtype=torch.float64)

    weights = {"recurrent": (draw(d, d), draw(d, d)), "attention": ()}.get(kind, (draw(k, d, d),))
    scaled = tuple(w / d**0.5 for w in weights)
    x = draw(n, d)

    def last(layers: int, first: Tensor) -> Tensor:
        out = torch.cat([first[None], x[1:]])
        for layer in range(layers):
            dilation = k**layer if kind == "dilated" else 1
            name = kind.replace("dilated", "convolution")
            out, _, _ = run_layer(name, out, scaled, dilation)
        return out[-1]

    _, multiplications, steps = run_layer(kind.replace("dilated", "convolution"), x, scaled)
    layers = 1
    while not jacobian(partial(last, layers), x[0]).any():
        layers += 1
    return {
        "multiplications": multiplications,
        "sequential_steps": steps,
        "path_length": steps * layers,
    }
