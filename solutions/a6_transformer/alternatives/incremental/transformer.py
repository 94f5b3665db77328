"""A decoder that goes step by step: it never reads a prefix twice.

A decoder layer keeps what went into its self-attention so far, so a new token costs one place and
not all of them. Greedy and beam search use that; training reads whole targets, as usual. Encoder
and decoder layers are one class, with two or three sublayers in a row. A Jacobian shows how many
layers are enough.
"""

from functools import partial

from torch.autograd.functional import jacobian


class Layer(nn.Module):
    """Self-attention, cross-attention if there is a memory, and feed-forward."""

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        dropout: float,
        norm: str,
        crosses: bool,
    ) -> None:
        super().__init__()
        check_norm(norm)
        check_sizes(d_model, num_heads, d_ff)
        self.d_model = d_model
        self.pre, self.rate, self.crosses = norm == "pre", dropout, crosses
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        if crosses:
            self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        for number in range(1, 4 if crosses else 3):
            setattr(self, f"norm{number}", LayerNorm(d_model))

    def enter(self, x: Tensor, norm: LayerNorm) -> Tensor:
        """What a sublayer gets."""
        return norm(x) if self.pre else x

    def leave(self, x: Tensor, new: Tensor, norm: LayerNorm) -> Tensor:
        """What comes after a sublayer."""
        total = x + F.dropout(new, self.rate, self.training)
        return total if self.pre else norm(total)

    def run(
        self,
        x: Tensor,
        past: Tensor | None,
        mask: Tensor | None,
        memory: Tensor | None,
        memory_mask: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """The output for new places x, and what the self-attention has seen with them."""
        entered = self.enter(x, self.norm1)
        seen = entered if past is None else torch.cat([past, entered], dim=1)
        x = self.leave(x, self.self_attention(entered, seen, seen, mask)[0], self.norm1)
        last = self.norm2
        if self.crosses:
            entered = self.enter(x, self.norm2)
            attended, _ = self.cross_attention(entered, memory, memory, memory_mask)
            x = self.leave(x, attended, self.norm2)
            last = self.norm3
        return self.leave(x, self.feed_forward(self.enter(x, last)), last), seen


class EncoderLayer(Layer):
    """A layer without a memory."""

    def __init__(
        self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.0, norm: str = "pre"
    ) -> None:
        super().__init__(d_model, num_heads, d_ff, dropout, norm, crosses=False)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        check_vectors(x, self.d_model)
        return self.run(x, None, mask, None, None)[0]


class DecoderLayer(Layer):
    """A layer with a memory."""

    def __init__(
        self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.0, norm: str = "pre"
    ) -> None:
        super().__init__(d_model, num_heads, d_ff, dropout, norm, crosses=True)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        check_vectors(x, self.d_model)
        check_vectors(memory, self.d_model)
        return self.run(x, None, mask, memory, memory_mask)[0]


class Transformer(nn.Module):
    def embed(self, ids: Tensor, embedding: nn.Embedding, first: int = 0) -> Tensor:
        """The vectors of ids that stand at the places from `first` on."""
        length = first + ids.shape[1]
        if self.config.positions == "learned":
            places = self.positions(length)
        else:
            places = sinusoidal_encoding(length, self.config.d_model)
        x = self.config.d_model**0.5 * embedding(ids)
        return F.dropout(x + places[first:].to(x.dtype), self.config.dropout, self.training)


def label_smoothing_loss(logits: Tensor, targets: Tensor, smoothing: float = 0.1) -> Tensor:
    """log(sum(exp)) minus the logits' mean under the smoothed targets."""
    check_floats(logits)
    check_ids(targets)
    if logits.ndim != 3 or targets.shape != logits.shape[:2]:
        raise ValueError(f"logits {tuple(logits.shape)} and targets {tuple(targets.shape)} differ")
    check_tokens(targets, logits.shape[2])
    if smoothing < 0 or not smoothing < 1:
        raise ValueError(f"smoothing must lie from 0 to 1 (without 1), got {smoothing}")
    total = logits.sum() * 0  # so that a batch of padding alone has a gradient too
    real = targets.ne(PADDING)
    if real.any():
        rows = logits[real] - logits[real].amax(dim=1, keepdim=True).detach()
        right = rows[torch.arange(len(rows)), targets[real]]
        expected = torch.lerp(right, rows.mean(dim=1), smoothing)
        total = (rows.logsumexp(dim=1) - expected).mean()
    return total


def without_special(logits: Tensor) -> Tensor:
    """The log-softmax of logits, with -inf for PADDING and BEGIN."""
    special = torch.arange(logits.shape[1]) < END
    return torch.log_softmax(logits, dim=1).masked_fill(special, -math.inf)


def next_log_probabilities(
    model: Transformer, prefix: Tensor, memory: Tensor, source: Tensor
) -> Tensor:
    """What may come after the last column, from a whole prefix."""
    masks = make_masks(source, prefix)
    return without_special(model.decode(prefix, memory, masks[1], masks[0])[:, -1])


class Reader:
    """Reads targets token by token, and keeps for each layer what its self-attention has seen."""

    def __init__(self, model: Transformer, source: Tensor) -> None:
        self.model = model
        self.mask = padding_mask((source != PADDING).sum(dim=1), source.shape[1])
        self.memory = model.encode(source, self.mask)
        self.pasts: list[Tensor | None] = [None] * len(model.decoder.layers)
        self.place = 0

    def read(self, tokens: Tensor) -> Tensor:
        """The log-probabilities (n, v) after one more token (n,) each."""
        x = self.model.embed(tokens[:, None], self.model.target_embedding, self.place)
        self.place += 1
        for number, layer in enumerate(self.model.decoder.layers):
            x, self.pasts[number] = layer.run(x, self.pasts[number], None, self.memory, self.mask)
        return without_special(self.model.output(self.model.decoder.norm(x))[:, -1])

    def keep(self, rows: Tensor) -> None:
        """Go on with these rows, in this order."""
        self.memory, self.mask = self.memory[rows], self.mask[rows]
        self.pasts = [past[rows] for past in self.pasts]


def greedy_decode(model: Transformer, source: Tensor, max_length: int = 32) -> list[list[int]]:
    """One token for each sequence at a time; those that have ended read on, unheard."""
    check_padding(source)
    check_length(model, max_length)
    with Evaluation(model):
        reader = Reader(model, source)
        token = torch.full((len(source),), BEGIN)
        columns: list[Tensor] = []
        ended = torch.zeros(len(source), dtype=torch.bool)
        while len(columns) < max_length and not ended.all():
            token = reader.read(token).argmax(dim=1)
            columns.append(token)
            ended |= token == END
    return [words_of(row) for row in torch.stack(columns, dim=1).tolist()]


def beam_search(
    model: Transformer, source: Tensor, max_length: int, width: int, alpha: float
) -> list[int]:
    """The reader is cut down to the live hypotheses after each step."""
    reader = Reader(model, source)
    live = torch.full((1, 1), BEGIN)
    scores = torch.zeros(1, 1, dtype=torch.float64)
    best_rank, best_ids = -math.inf, []
    for length in range(1, max_length + 1):
        totals = scores + reader.read(live[:, -1])  # (live, v)
        possible = int(torch.isfinite(totals).sum())
        top, places = totals.flatten().topk(min(width, possible))
        parents = torch.div(places, totals.shape[1], rounding_mode="floor")
        tokens = places.remainder(totals.shape[1])
        longer = torch.cat([live[parents], tokens[:, None]], dim=1)
        over = tokens.eq(END) if length < max_length else torch.ones_like(tokens, dtype=torch.bool)
        for score, ids in zip(top[over].tolist(), longer[over].tolist(), strict=True):
            rank = score / math.pow(length, alpha)
            if rank > best_rank:
                best_rank, best_ids = rank, ids
        if over.all():
            break
        live, scores = longer[~over], top[~over, None]
        reader.keep(parents[~over])
    return words_of(best_ids)


def run_layer(
    kind: str, x: Tensor, weights: tuple[Tensor, ...] = (), dilation: int = 1
) -> tuple[Tensor, int, int]:
    """One layer, with its products counted."""
    check_floats(x)
    if dilation < 1:
        raise ValueError(f"dilation must be at least 1, got {dilation}")
    products = CountedProducts()
    n, d = x.shape
    if kind == "recurrent":
        out = x.new_zeros(0, d)
        state = x.new_zeros(1, d)
        for place in range(n):
            state = sum(products.together((x[[place]], weights[0]), (state, weights[1]))).tanh()
            out = torch.cat([out, state])
    elif kind == "convolution":
        (w,) = weights
        wide = torch.cat([x.new_zeros(len(w) * dilation, d), x])
        # One product of a wide matrix with a tall one: the k windows side by side.
        windows = [wide[len(w) * dilation - j * dilation :][:n] for j in range(len(w))]
        (out,) = products.together((torch.cat(windows, dim=1), w.reshape(-1, d)))
    elif kind == "attention":
        scores = products.together((x / math.sqrt(d), x.T))
        out = products.together((scores[0].softmax(dim=1), x))[0]
    else:
        raise ValueError(f"unknown kind {kind!r}")
    return out, products.multiplications, products.steps


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
