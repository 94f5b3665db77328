"""One class for the way around a sublayer, tables as buffers, and plain lists.

Around puts shortcut, norm and dropout around a function of x, and has no parameters. Masks come
from the ids themselves. Shared embeddings have no output layer of their own. Beams are Python lists
of tuples, and a scheduler sets the learning rate.
"""

from collections.abc import Callable, Iterator


class LearnedPositions(nn.Embedding):
    """An embedding of places."""

    def __init__(self, max_length: int, d_model: int) -> None:
        check_sizes(max_length, d_model)
        super().__init__(max_length, d_model)

    def forward(self, length: int) -> Tensor:
        if length < 1 or length > self.num_embeddings:
            raise ValueError(f"places go up to {self.num_embeddings}, got {length}")
        return super().forward(torch.arange(length))


class LayerNorm(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        check_floats(x)
        if x.ndim == 0 or x.shape[-1] != len(self.weight):
            raise ValueError(f"the last axis must be {len(self.weight)}, got {tuple(x.shape)}")
        variance, mean = torch.var_mean(x, dim=-1, unbiased=False, keepdim=True)
        return (x - mean) / (variance + self.epsilon).sqrt() * self.weight + self.bias


class Around(nn.Module):
    """A shortcut around a sublayer, with dropout, and with the norm where it belongs."""

    def __init__(self, norm: str, dropout: float) -> None:
        super().__init__()
        check_norm(norm)
        self.kind = norm
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, norm: LayerNorm, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        if self.kind == "post":
            return norm(x + self.dropout(sublayer(x)))
        return x + self.dropout(sublayer(norm(x)))


class EncoderLayer(nn.Module):
    def __init__(
        self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.0, norm: str = "pre"
    ) -> None:
        super().__init__()
        check_sizes(d_model, num_heads, d_ff)
        self.d_model = d_model
        self.around = Around(norm, dropout)
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        check_vectors(x, self.d_model)
        x = self.around(x, self.norm1, lambda x: self.self_attention(x, x, x, mask)[0])
        return self.around(x, self.norm2, self.feed_forward)


class DecoderLayer(nn.Module):
    def __init__(
        self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.0, norm: str = "pre"
    ) -> None:
        super().__init__()
        check_sizes(d_model, num_heads, d_ff)
        self.d_model = d_model
        self.around = Around(norm, dropout)
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        check_vectors(x, self.d_model)
        check_vectors(memory, self.d_model)
        x = self.around(x, self.norm1, lambda x: self.self_attention(x, x, x, mask)[0])
        x = self.around(
            x, self.norm2, lambda x: self.cross_attention(x, memory, memory, memory_mask)[0]
        )
        return self.around(x, self.norm3, self.feed_forward)


def make_masks(source: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """(n, 1, s) and (n, t, t), from the ids themselves."""
    check_padding(source)
    check_padding(target)
    source_mask = source.ne(PADDING).unsqueeze(1)
    target_mask = causal_mask(target.shape[1]) & target.ne(PADDING).unsqueeze(1)
    return source_mask, target_mask


class Transformer(nn.Module):
    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.source_embedding = new_embedding(config.source_vocabulary, config.d_model)
        if config.shared:
            # As plain attributes: a matrix that is used three times is registered once.
            self.vectors = [self.source_embedding] * 2
        else:
            self.target_embedding = new_embedding(config.target_vocabulary, config.d_model)
            self.output = nn.Linear(config.d_model, config.target_vocabulary, bias=False)
            nn.init.normal_(self.output.weight, std=1 / math.sqrt(config.d_model))
            self.vectors = [self.source_embedding, self.target_embedding]
        sizes = (config.d_model, config.num_heads, config.d_ff)
        if config.positions == "learned":
            self.positions = LearnedPositions(config.max_length, config.d_model)
        else:
            table = sinusoidal_encoding(config.max_length, config.d_model)
            self.register_buffer("table", table, persistent=False)
        self.encoder = Encoder(*sizes, config.encoder_layers, config.dropout, config.norm)
        self.decoder = Decoder(*sizes, config.decoder_layers, config.dropout, config.norm)

    def places(self, length: int, like: Tensor) -> Tensor:
        """The vectors of the first places, in the dtype of another tensor."""
        if self.config.positions == "learned":
            return self.positions(length)
        if length > len(self.table):
            self.table = sinusoidal_encoding(2 * length, self.config.d_model)
        return self.table[:length].to(like.dtype)

    def embed(self, ids: Tensor, embedding: nn.Embedding) -> Tensor:
        x = embedding(ids).mul(self.config.d_model**0.5)
        x = x + self.places(ids.shape[1], x)
        return F.dropout(x, self.config.dropout, self.training)

    def encode(self, source: Tensor, source_mask: Tensor | None = None) -> Tensor:
        check_tokens(source, self.config.source_vocabulary)
        check_padding(source)
        return self.encoder(self.embed(source, self.vectors[0]), source_mask)

    def decode(
        self,
        target: Tensor,
        memory: Tensor,
        target_mask: Tensor | None = None,
        source_mask: Tensor | None = None,
    ) -> Tensor:
        check_tokens(target, self.config.target_vocabulary)
        check_padding(target)
        x = self.decoder(self.embed(target, self.vectors[1]), memory, target_mask, source_mask)
        weight = self.source_embedding.weight if self.config.shared else self.output.weight
        return F.linear(x, weight)


def new_embedding(vocabulary: int, d_model: int) -> nn.Embedding:
    """An embedding whose vectors have about length 1."""
    embedding = nn.Embedding(vocabulary, d_model)
    nn.init.normal_(embedding.weight, std=1 / math.sqrt(d_model))
    return embedding


def endless_batches(n: int, size: int) -> Iterator[Tensor]:
    """Batches of numbers below n, pass after pass."""
    while True:
        order = torch.randperm(n)
        for start in range(0, n - size + 1, size):
            yield order[start : start + size]


def train(model: Transformer, source: Tensor, target: Tensor, config: Config) -> dict:
    """Teacher forcing with Adam; a scheduler sets the learning rate."""
    check_padding(source)
    check_padding(target)
    if len(source) != len(target):
        raise ValueError(f"there are {len(source)} sources and {len(target)} targets")
    torch.manual_seed(config.seed)
    optimizer = torch.optim.Adam(
        model.parameters(), lr=config.factor, betas=(0.9, 0.98), eps=1e-9, foreach=True
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: noam_rate(step + 1, model.config.d_model, config.warmup)
    )
    history: dict[str, list[float]] = {"loss": [], "learning_rate": []}
    batches = endless_batches(len(source), min(config.batch_size, len(source)))
    model.train()
    with TrainingDisplay(config.steps, title="Transformer") as display:
        for step, batch in zip(range(config.steps), batches, strict=False):
            rows = trim(target[batch])
            logits = model(trim(source[batch]), rows[:, :-1])
            loss = label_smoothing_loss(logits, rows[:, 1:], config.smoothing)
            if not torch.isfinite(loss):
                raise ValueError(f"the loss is {loss.item()} at step {step + 1}")
            history["loss"].append(loss.item())
            history["learning_rate"].append(float(schedule.get_last_lr()[0]))
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), config.max_norm)
            optimizer.step()
            optimizer.zero_grad()
            schedule.step()
            display.step(loss=history["loss"][-1])
    model.eval()
    return history


def greedy_decode(model: Transformer, source: Tensor, max_length: int = 32) -> list[list[int]]:
    """The source that is not done yet shrinks as its sequences end."""
    check_padding(source)
    check_length(model, max_length)
    answers: list[list[int]] = [[] for _ in source]
    with Evaluation(model):
        rows = torch.arange(len(source))
        memory = model.encode(source, source.ne(PADDING)[:, None])
        prefix = torch.full((len(source), 1), BEGIN)
        for _ in range(max_length):
            token = next_log_probabilities(model, prefix, memory[rows], source[rows]).argmax(1)
            going = token != END
            rows = rows[going]
            prefix = torch.cat([prefix, token[:, None]], dim=1)[going]
            for row, new in zip(rows.tolist(), token[going].tolist(), strict=True):
                answers[row].append(new)
            if len(rows) == 0:
                break
    return answers


def beam_search(
    model: Transformer, source: Tensor, max_length: int, width: int, alpha: float
) -> list[int]:
    """Hypotheses are tuples (log-probability, ids)."""
    memory = model.encode(source)
    live: list[tuple[float, list[int]]] = [(0.0, [BEGIN])]
    finished: list[tuple[float, list[int]]] = []
    while live and len(live[0][1]) <= max_length:
        n = len(live)
        prefix = torch.tensor([ids for _, ids in live])
        log_p = next_log_probabilities(
            model, prefix, memory.repeat(n, 1, 1), source.repeat(n, 1)
        ).tolist()
        longer = [
            (score + log_p[row][token], [*ids, token])
            for row, (score, ids) in enumerate(live)
            for token in range(END, len(log_p[row]))
        ]
        longer.sort(key=lambda hypothesis: -hypothesis[0])
        finished += [hypothesis for hypothesis in longer[:width] if hypothesis[1][-1] == END]
        live = [hypothesis for hypothesis in longer[:width] if hypothesis[1][-1] != END]
    best = max(finished + live, key=lambda pair: pair[0] / (len(pair[1]) - 1) ** alpha)
    return words_of(best[1])


def attention_maps(model: Transformer, source: Tensor, target: Tensor) -> dict[str, Tensor]:
    """Walk through the layers, and ask each attention once more."""
    source_mask, target_mask = make_masks(source, target)
    maps: dict[str, list[Tensor]] = {"encoder": [], "decoder": [], "cross": []}

    def entering(norm: LayerNorm, x: Tensor) -> Tensor:
        return norm(x) if model.config.norm == "pre" else x

    with Evaluation(model):
        x = model.embed(source, model.vectors[0])
        for layer in model.encoder.layers:
            q = entering(layer.norm1, x)
            maps["encoder"].append(layer.self_attention(q, q, q, source_mask)[1])
            x = layer(x, source_mask)
        memory = model.encode(source, source_mask)
        x = model.embed(target, model.vectors[1])
        for layer in model.decoder.layers:
            q = entering(layer.norm1, x)
            attended, weights = layer.self_attention(q, q, q, target_mask)
            maps["decoder"].append(weights)
            between = x + attended
            between = layer.norm1(between) if model.config.norm == "post" else between
            q = entering(layer.norm2, between)
            maps["cross"].append(layer.cross_attention(q, memory, memory, source_mask)[1])
            x = layer(x, memory, target_mask, source_mask)
    return {name: torch.stack(weights) for name, weights in maps.items()}
