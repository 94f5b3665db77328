"""A decoder that goes step by step: greedy and beam search read each token once."""

from assignments.a5_attention.attention import padding_mask


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
    with evaluating(model):
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
