"""A decoder that goes step by step: greedy and beam search read each token once."""

from assignments.a5_attention.attention import padding_mask


def without_special(logits: Tensor) -> Tensor:
    """The log-softmax of logits, with -inf for PAD and BOS."""
    special = torch.arange(logits.shape[1]) < EOS
    return torch.log_softmax(logits, dim=1).masked_fill(special, -math.inf)


def next_log_probabilities(
    model: Transformer, prefix: Tensor, memory: Tensor, source: Tensor
) -> Tensor:
    """The log-probabilities after the last column, from a whole prefix."""
    masks = make_masks(source, prefix)
    return without_special(model.decode(prefix, memory, masks[1], masks[0])[:, -1])


class Reader:
    """Reads targets token by token, and keeps the past inputs of each layer's self-attention."""

    def __init__(self, model: Transformer, source: Tensor) -> None:
        self.model = model
        self.mask = padding_mask((source != PAD).sum(dim=1), source.shape[1])
        self.memory = model.encode(source, self.mask)
        self.pasts: list[Tensor | None] = [None] * len(model.decoder.layers)
        self.position = 0

    def read(self, tokens: Tensor) -> Tensor:
        """The log-probabilities (n, v) after one more token (n,) each."""
        x = self.model.embed(tokens[:, None], self.model.target_embedding, self.position)
        self.position += 1
        for number, layer in enumerate(self.model.decoder.layers):
            x, self.pasts[number] = layer.run(x, self.pasts[number], None, self.memory, self.mask)
        return without_special(self.model.output(self.model.decoder.norm(x))[:, -1])

    def keep(self, rows: Tensor) -> None:
        """Continue with these rows, in this order."""
        self.memory, self.mask = self.memory[rows], self.mask[rows]
        self.pasts = [past[rows] for past in self.pasts]


def greedy_decode(model: Transformer, source: Tensor, max_length: int = 32) -> list[list[int]]:
    """One token per sequence at a time; the output of finished ones is ignored."""
    check_padding(source)
    check_length(model, max_length)
    with evaluating(model):
        reader = Reader(model, source)
        token = torch.full((len(source),), BOS)
        columns: list[Tensor] = []
        ended = torch.zeros(len(source), dtype=torch.bool)
        while len(columns) < max_length and not ended.all():
            token = reader.read(token).argmax(dim=1)
            columns.append(token)
            ended |= token == EOS
    return [strip_special_tokens(row) for row in torch.stack(columns, dim=1).tolist()]


def beam_search(
    model: Transformer, source: Tensor, max_length: int, beam_width: int, length_penalty: float
) -> list[int]:
    """The reader is cut down to the live hypotheses after each step."""
    reader = Reader(model, source)
    live = torch.full((1, 1), BOS)
    scores = torch.zeros(1, 1, dtype=torch.float64)
    best_rank, best_ids = -math.inf, []
    for length in range(1, max_length + 1):
        totals = scores + reader.read(live[:, -1])  # (live, v)
        possible = int(torch.isfinite(totals).sum())
        top, choices = totals.flatten().topk(min(beam_width, possible))
        parents = torch.div(choices, totals.shape[1], rounding_mode="floor")
        tokens = choices.remainder(totals.shape[1])
        longer = torch.cat([live[parents], tokens[:, None]], dim=1)
        over = tokens.eq(EOS) if length < max_length else torch.ones_like(tokens, dtype=torch.bool)
        for score, ids in zip(top[over].tolist(), longer[over].tolist(), strict=True):
            rank = score / math.pow(length, length_penalty)
            if rank > best_rank:
                best_rank, best_ids = rank, ids
        if over.all():
            break
        live, scores = longer[~over], top[~over, None]
        reader.keep(parents[~over])
    return strip_special_tokens(best_ids)
