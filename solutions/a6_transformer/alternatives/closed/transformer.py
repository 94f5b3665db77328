"""Closed forms: waves as complex numbers, and backward passes of the norm and the loss by hand.

The beams of all sources go through the model together. Layers are run by PyTorch's operators, and
what they cost follows from their shapes.
"""

import numpy as np


def turns(d_model: int) -> np.ndarray:
    """The angle by which each wave turns from one place to the next, (d_model / 2,)."""
    check_encoding(d_model)
    return np.power(10000.0, -np.arange(d_model // 2) / (d_model / 2))


def sinusoidal_encoding(length: int, d_model: int) -> Tensor:
    """Real and imaginary parts of exp(i * angle), the imaginary part first."""
    check_encoding(d_model, length)
    waves = np.exp(1j * np.multiply.outer(np.arange(length), turns(d_model)))
    return torch.from_numpy(np.stack([waves.imag, waves.real], axis=-1).reshape(length, d_model))


def shift_matrix(k: int, d_model: int) -> Tensor:
    """cos on the diagonal, sin above and -sin below it, in turn with zeros."""
    waves = np.exp(1j * k * turns(d_model))
    between = np.zeros(d_model - 1)
    between[::2] = waves.imag
    matrix = np.diag(np.repeat(waves.real, 2)) + np.diag(between, 1) - np.diag(between, -1)
    return torch.from_numpy(matrix)


class Normalize(torch.autograd.Function):
    """(x - mean) / sqrt(variance + epsilon) over the last axis, with its backward pass."""

    @staticmethod
    def forward(context: object, x: Tensor, epsilon: float) -> Tensor:
        centred = x - x.mean(dim=-1, keepdim=True)
        scale = torch.rsqrt(centred.square().mean(dim=-1, keepdim=True) + epsilon)
        normed = centred * scale
        context.save_for_backward(normed, scale)
        return normed

    @staticmethod
    def backward(context: object, dout: Tensor) -> tuple[Tensor, None]:
        normed, scale = context.saved_tensors
        # What would change the mean or the length of the vector is taken out of the gradient.
        along = (dout * normed).mean(dim=-1, keepdim=True)
        return scale * (dout - dout.mean(dim=-1, keepdim=True) - normed * along), None


class LayerNorm(nn.Module):
    """Normalize, then weight and bias."""

    def forward(self, x: Tensor) -> Tensor:
        check_floats(x)
        if x.ndim < 1 or x.shape[-1] != self.weight.shape[0]:
            raise ValueError(f"{tuple(x.shape)} doesn't end with {self.weight.shape[0]}")
        return Normalize.apply(x, self.epsilon) * self.weight + self.bias


class SmoothedCrossEntropy(torch.autograd.Function):
    """The sum over rows; the gradient is what the model believes minus what it should believe."""

    @staticmethod
    def forward(context: object, rows: Tensor, targets: Tensor, smoothing: float) -> Tensor:
        log_p = torch.log_softmax(rows, dim=1)
        wanted = F.one_hot(targets, rows.shape[1]).to(rows.dtype) * (1 - smoothing)
        wanted += smoothing / rows.shape[1]
        context.save_for_backward(log_p.exp() - wanted)
        return -torch.einsum("ij,ij->", log_p, wanted)

    @staticmethod
    def backward(context: object, dout: Tensor) -> tuple[Tensor, None, None]:
        (difference,) = context.saved_tensors
        return dout * difference, None, None


def label_smoothing_loss(logits: Tensor, targets: Tensor, smoothing: float = 0.1) -> Tensor:
    """The mean over real places."""
    check_floats(logits)
    check_ids(targets)
    if logits.ndim != 3 or targets.shape != logits.shape[:2]:
        raise ValueError(f"logits {tuple(logits.shape)} and targets {tuple(targets.shape)} differ")
    check_tokens(targets, logits.shape[2])
    if not (smoothing >= 0 and smoothing < 1):
        raise ValueError(f"smoothing can't be {smoothing}")
    real = targets.flatten().nonzero()[:, 0]
    rows = logits.flatten(0, 1).index_select(0, real)
    total = SmoothedCrossEntropy.apply(rows, targets.flatten()[real], float(smoothing))
    return total / max(len(real), 1)


def greedy_decode(model: Transformer, source: Tensor, max_length: int = 32) -> list[list[int]]:
    """All columns are there from the start, and are filled from the left."""
    check_padding(source)
    check_length(model, max_length)
    ids = torch.full((len(source), max_length + 1), PADDING)
    ids[:, 0] = BEGIN
    going = torch.ones(len(source), dtype=torch.bool)
    with Evaluation(model):
        source_mask, _ = make_masks(source, ids[:, :1])
        memory = model.encode(source, source_mask)
        for place in range(1, max_length + 1):
            log_p = next_log_probabilities(model, ids[:, :place], memory, source)
            ids[going, place] = log_p[going].argmax(dim=1)
            going = going & (ids[:, place] != END)
            if not going.any():
                break
    return [words_of(row) for row in ids.tolist()]


def beam_search(
    model: Transformer, source: Tensor, max_length: int, width: int, alpha: float
) -> list[int]:
    """One source is a batch of one."""
    return search_together(model, source, max_length, width, alpha)[0]


def search_together(
    model: Transformer, source: Tensor, max_length: int, width: int, alpha: float
) -> list[list[int]]:
    """The beams of all sources go through the model as one batch; each keeps to its own."""
    memory = model.encode(source, make_masks(source, source)[0])
    beams: list[list[tuple[float, list[int]]]] = [[(0.0, [BEGIN])] for _ in source]
    finished: list[list[tuple[float, list[int]]]] = [[] for _ in source]
    for length in range(1, max_length + 1):
        owners = [row for row, beam in enumerate(beams) for _ in beam]
        if not owners:
            break
        prefix = torch.tensor([ids for beam in beams for _, ids in beam])
        log_p = next_log_probabilities(model, prefix, memory[owners], source[owners])
        first = 0
        for row, beam in enumerate(beams):
            if not beam:
                continue
            scores = torch.tensor([score for score, _ in beam], dtype=torch.float64)
            totals = scores[:, None] + log_p[first : first + len(beam)]
            first += len(beam)
            top, places = totals[:, END:].flatten().sort(descending=True)
            choices = totals.shape[1] - END
            longer = [
                (score, [*beam[place // choices][1], END + place % choices])
                for score, place in zip(top[:width].tolist(), places[:width].tolist(), strict=True)
            ]
            beams[row] = [pair for pair in longer if pair[1][-1] != END and length < max_length]
            finished[row] += [
                (score / length**alpha, ids)
                for score, ids in longer
                if ids[-1] == END or length == max_length
            ]
    return [words_of(max(pairs)[1]) for pairs in finished]


def beam_decode(
    model: Transformer,
    source: Tensor,
    max_length: int = 32,
    width: int = 4,
    alpha: float = 0.6,
) -> list[list[int]]:
    """What the search finds for each source."""
    check_padding(source)
    check_length(model, max_length)
    if width < 1 or not 0 <= alpha < math.inf:
        raise ValueError(f"no search with width {width} and alpha {alpha}")
    with Evaluation(model):
        return search_together(model, trim(source), max_length, width, alpha)


def complexity(kind: str, n: int, d: int, k: int = 3) -> dict[str, int]:
    """Exact integers."""
    check_layer(kind, n, d, k)
    convolution = k * n * d**2
    answers = {
        "recurrent": lambda: (2 * n * d**2, n, n),
        "attention": lambda: (2 * d * n**2, 2, 2),
        "convolution": lambda: (convolution, 1, max(1, -((1 - n) // (k - 1)))),
        "dilated": lambda: (convolution, 1, max(1, digits(n - 1, k))),
    }
    names = ("multiplications", "sequential_steps", "path_length")
    return dict(zip(names, answers[kind](), strict=True))


def digits(number: int, base: int) -> int:
    """How many digits a number has: the offset to the first place, one digit for each layer."""
    count = 0
    while number:
        number //= base
        count += 1
    return count


def run_layer(
    kind: str, x: Tensor, weights: tuple[Tensor, ...] = (), dilation: int = 1
) -> tuple[Tensor, int, int]:
    """One layer, by operators of PyTorch where there is one; the counts follow from its shapes."""
    check_floats(x)
    n, d = x.shape
    if dilation < 1:
        raise ValueError(f"dilation can't be {dilation}")
    if kind == "recurrent":
        w_x, w_h = weights
        out = [x.new_zeros(d)]
        for row in x:
            out.append(torch.tanh(row @ w_x + out[-1] @ w_h))
        return torch.stack(out[1:]), n * (w_x.numel() + w_h.numel()), n
    if kind == "convolution":
        (w,) = weights
        padded = F.pad(x.T, ((len(w) - 1) * dilation, 0))
        out = F.conv1d(padded[None], w.flip(0).permute(2, 1, 0), dilation=dilation)
        return out[0].T, n * w.numel(), 1
    if kind == "attention":
        scores = torch.einsum("id,jd->ij", x, x) / math.sqrt(d)
        out = torch.einsum("ij,jd->id", torch.softmax(scores, dim=1), x)
        return out, 2 * scores.numel() * d, 2
    raise ValueError(f"there is no kind {kind!r}")
