"""Assignment 4 step by step: the GRUs are written out, one step at a time.

The softmax is exp and a sum. The encoder walks over the columns in both directions and lets the
mask hold its state at padding; nothing is packed. The decoders share one class. Decoding goes
sentence by sentence, with the beam in a plain list.
"""

import math

import torch
from torch import Tensor, nn

from common.training.training_progress import TrainingDisplay

PADDING, BEGIN, END = 0, 1, 2


def check_scores(scores: Tensor) -> None:
    """Raise ValueError unless scores are a tensor with at least one axis."""
    if not isinstance(scores, Tensor):
        raise ValueError(f"scores are a tensor, not a {type(scores).__name__}")
    if scores.ndim == 0:
        raise ValueError("scores have at least one axis")


def check_mask(mask: Tensor | None, shape: tuple[int, ...]) -> None:
    """Raise ValueError unless the mask is None, or of bool and broadcasts to this shape."""
    if mask is None:
        return
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        raise ValueError(f"a mask is a tensor of bool, not {getattr(mask, 'dtype', type(mask))}")
    sizes = zip(reversed(mask.shape), reversed(shape), strict=False)
    if mask.ndim > len(shape) or any(size not in (1, full) for size, full in sizes):
        raise ValueError(f"a mask of shape {tuple(mask.shape)} doesn't fit {tuple(shape)}")


def check_ids(ids: Tensor, vocabulary: int, ndim: int) -> None:
    """Raise ValueError unless these are ids of the vocabulary, with no axis of length 0."""
    if not isinstance(ids, Tensor):
        raise ValueError(f"ids are a tensor, not a {type(ids).__name__}")
    if ids.dtype != torch.int64:
        raise ValueError(f"ids are int64, not {ids.dtype}")
    if ids.ndim != ndim or ids.numel() == 0:
        raise ValueError(f"ids have {ndim} axes, none of length 0, but got {tuple(ids.shape)}")
    if ids.min() < 0 or ids.max() >= vocabulary:
        raise ValueError(f"ids lie from 0 to {vocabulary - 1}, not {ids.min()} to {ids.max()}")


def check_source(source: Tensor, vocabulary: int) -> None:
    """check_ids, and every row has an id, and padding only after its ids."""
    check_ids(source, vocabulary, ndim=2)
    real = source != PADDING  # (n, t)
    if not real[:, 0].all():
        raise ValueError("a source is empty, or begins with padding")
    if (real[:, 1:] & ~real[:, :-1]).any():
        raise ValueError("a source has padding between its ids")


def check_target(target: Tensor, vocabulary: int, n: int) -> None:
    """check_ids, and n rows of BEGIN, ids and one END, with padding only after it."""
    check_ids(target, vocabulary, ndim=2)
    if len(target) != n:
        raise ValueError(f"there are {n} sources, but {len(target)} targets")
    real = target != PADDING  # (n, u)
    if (real[:, 1:] & ~real[:, :-1]).any():
        raise ValueError("a target has padding between its ids")
    ends = target == END  # (n, u)
    if (target[:, 0] != BEGIN).any() or (ends.sum(dim=1) != 1).any():
        raise ValueError("a target is BEGIN, ids and one END")
    if (ends[:, :-1] & real[:, 1:]).any():
        raise ValueError("a target has ids after its END")


def check_batch(*tensors: Tensor) -> None:
    """Raise ValueError unless all have as many rows, and no axis of length 0."""
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise ValueError(f"inputs are tensors, not a {type(tensor).__name__}")
    shapes = [tuple(tensor.shape) for tensor in tensors]
    if any(shape[:1] != shapes[0][:1] or 0 in shape for shape in shapes):
        raise ValueError(
            f"inputs have as many rows each, and no axis of length 0, but got {shapes}"
        )


def check_decoding(max_length: int, width: int = 1, alpha: float = 1.0) -> None:
    """Raise ValueError for settings that make no sense."""
    if width < 1 or max_length < 1 or not 0 <= alpha < math.inf:
        raise ValueError(
            "width and max_length must be at least 1, alpha at least 0 and finite, "
            f"got {width}, {max_length} and {alpha}"
        )


def check_logits(logits: Tensor) -> None:
    """Raise ValueError if a logit is not finite: then no id is the likeliest."""
    if not logits.isfinite().all():
        raise ValueError("the model gives logits that are not finite: has training diverged?")


# Exercise 4.1


def masked_softmax(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """exp and a sum: in a row without any place both are 0."""
    check_scores(scores)
    check_mask(mask, scores.shape)
    if mask is None:
        mask = torch.ones_like(scores, dtype=torch.bool)
    # Scores outside the mask become 0 before exp, so that nothing overflows there.
    lowest = torch.finfo(scores.dtype).min
    largest = torch.where(mask, scores, lowest).detach().amax(dim=-1, keepdim=True)
    shifted = torch.where(mask, scores - largest, 0.0)
    powers = shifted.exp() * mask
    total = powers.sum(dim=-1, keepdim=True)
    return powers / torch.where(total > 0, total, 1.0)


# Exercise 4.2


class AdditiveAttention(nn.Module):
    """The sum that makes the context is written as a product and a sum."""

    def __init__(self, query_size: int, key_size: int, hidden_size: int) -> None:
        super().__init__()
        self.query = nn.Linear(query_size, hidden_size, bias=False)
        self.key = nn.Linear(key_size, hidden_size, bias=False)
        self.score = nn.Linear(hidden_size, 1, bias=False)

    def forward(
        self, query: Tensor, keys: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """(context, weights)."""
        check_batch(query, keys)
        check_mask(mask, keys.shape[:2])
        hidden = (self.query(query).unsqueeze(1) + self.key(keys)).tanh()  # (n, t, hidden_size)
        scores = (hidden * self.score.weight[0]).sum(dim=2)  # (n, t)
        weights = masked_softmax(scores, mask)
        return (weights.unsqueeze(2) * keys).sum(dim=1), weights


def gru_step(x: Tensor, h: Tensor, w_x: Tensor, w_h: Tensor, b_x: Tensor, b_h: Tensor) -> Tensor:
    """One step of a GRU, with PyTorch's weights: reset gate, update gate, candidate."""
    a_r, a_z, a_g = (x @ w_x.T + b_x).chunk(3, dim=1)
    u_r, u_z, u_g = (h @ w_h.T + b_h).chunk(3, dim=1)
    reset, update = torch.sigmoid(a_r + u_r), torch.sigmoid(a_z + u_z)
    candidate = torch.tanh(a_g + reset * u_g)
    return (1 - update) * candidate + update * h


# Exercise 4.3


class Encoder(nn.Module):
    """nn.GRU holds the weights; the steps are ours."""

    def __init__(self, vocabulary: int, embedding_size: int, hidden_size: int) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.embedding = nn.Embedding(vocabulary, embedding_size)
        self.gru = nn.GRU(embedding_size, hidden_size, bidirectional=True)

    def forward(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """(states, final)."""
        check_source(source, self.vocabulary)
        vectors = self.embedding(source)  # (n, t, embedding_size)
        columns = list(range(source.shape[1]))
        forward, last_forward = self.walk(vectors, source != PADDING, columns, "_l0")
        backward, last_backward = self.walk(
            vectors, source != PADDING, columns[::-1], "_l0_reverse"
        )
        states = [torch.cat([forward[j], backward[j]], dim=1) for j in columns]
        return torch.stack(states, dim=1), torch.cat([last_forward, last_backward], dim=1)

    def walk(
        self, vectors: Tensor, real: Tensor, columns: list[int], suffix: str
    ) -> tuple[dict[int, Tensor], Tensor]:
        """Read the columns in this order: the state after each, zeros at padding, and the last."""
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        weights = [getattr(self.gru, name + suffix) for name in names]
        state = vectors.new_zeros(len(vectors), self.gru.hidden_size)
        states = {}
        for j in columns:
            here = real[:, j, None]
            state = torch.where(here, gru_step(vectors[:, j], state, *weights), state)
            states[j] = state * here
        return states, state


# Exercise 4.4


class Decoder(nn.Module):
    """What both decoders share: all but where a context comes from."""

    def __init__(
        self, vocabulary: int, embedding_size: int, context_size: int, hidden_size: int
    ) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.embedding = nn.Embedding(vocabulary, embedding_size)
        self.initial = nn.Linear(context_size, hidden_size)
        self.cell = nn.GRUCell(embedding_size + context_size, hidden_size)
        self.output = nn.Linear(hidden_size + context_size, vocabulary)

    def start(self, final: Tensor) -> Tensor:
        """The state before the first step."""
        check_batch(final)
        return self.initial(final).tanh()

    def write(self, token: Tensor, state: Tensor, context: Tensor) -> tuple[Tensor, Tensor]:
        """One step with a context: (logits, the new state)."""
        check_ids(token, self.vocabulary, ndim=1)
        check_batch(token, state, context)
        cell = self.cell
        weights = cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh
        state = gru_step(torch.hstack([self.embedding(token), context]), state, *weights)
        return self.output(torch.hstack([state, context])), state


class FixedContextDecoder(Decoder):
    """The same context at every step."""

    def step(self, token: Tensor, state: Tensor, context: Tensor) -> tuple[Tensor, Tensor]:
        """(Logits, the new state)."""
        return self.write(token, state, context)

    def forward(self, inputs: Tensor, context: Tensor) -> Tensor:
        """Teacher forcing: the logits."""
        check_ids(inputs, self.vocabulary, ndim=2)
        check_batch(inputs, context)
        logits = context.new_empty(*inputs.shape, self.vocabulary)
        state = self.start(context)
        for k in range(inputs.shape[1]):
            logits[:, k], state = self.step(inputs[:, k], state, context)
        return logits


# Exercise 4.5


class AttentionDecoder(Decoder):
    """A context of its own for every step."""

    def __init__(
        self,
        vocabulary: int,
        embedding_size: int,
        context_size: int,
        hidden_size: int,
        attention_size: int,
    ) -> None:
        super().__init__(vocabulary, embedding_size, context_size, hidden_size)
        self.attention = AdditiveAttention(hidden_size, context_size, attention_size)

    def step(
        self, token: Tensor, state: Tensor, keys: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """(Logits, the new state, weights)."""
        check_batch(token, state, keys)
        context, weights = self.attention(state, keys, mask)
        return *self.write(token, state, context), weights

    def forward(
        self, inputs: Tensor, final: Tensor, keys: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Teacher forcing: (logits, weights)."""
        check_ids(inputs, self.vocabulary, ndim=2)
        check_batch(inputs, final, keys)
        check_mask(mask, keys.shape[:2])
        logits = keys.new_empty(*inputs.shape, self.vocabulary)
        weights = keys.new_empty(*inputs.shape, keys.shape[1])
        state = self.start(final)
        for k in range(inputs.shape[1]):
            logits[:, k], state, weights[:, k] = self.step(inputs[:, k], state, keys, mask)
        return logits, weights


# Exercise 4.6


class Seq2Seq(nn.Module):
    """An encoder and a decoder."""

    def __init__(
        self,
        source_vocabulary: int,
        target_vocabulary: int,
        embedding_size: int = 32,
        hidden_size: int = 64,
        attention: bool = True,
    ) -> None:
        super().__init__()
        context_size = 2 * hidden_size
        sizes = target_vocabulary, embedding_size, context_size, hidden_size
        self.encoder = Encoder(source_vocabulary, embedding_size, hidden_size)
        if attention:
            self.decoder = AttentionDecoder(*sizes, attention_size=hidden_size)
        else:
            self.decoder = FixedContextDecoder(*sizes)
        self.target_vocabulary = target_vocabulary
        self.has_attention = attention

    def forward(self, source: Tensor, inputs: Tensor) -> Tensor:
        """The logits of the decoder, with teacher forcing."""
        states, final = self.encoder(source)
        if not self.has_attention:
            return self.decoder(inputs, final)
        logits, _ = self.decoder(inputs, final, states, source != PADDING)
        return logits

    def start(self, source: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """(The decoder's first state, what every step needs besides)."""
        states, final = self.encoder(source)
        memory = (states, source != PADDING) if self.has_attention else (final,)
        return self.decoder.start(final), memory

    def step(
        self, token: Tensor, state: Tensor, memory: tuple[Tensor, ...]
    ) -> tuple[Tensor, Tensor]:
        """(Logits, the new state)."""
        logits, state, *_ = self.decoder.step(token, state, *memory)
        check_logits(logits)
        return logits, state

    def loss(self, source: Tensor, target: Tensor) -> Tensor:
        """The log-probabilities of the real ids, picked out and averaged."""
        check_target(target, self.target_vocabulary, n=len(source))
        log_p = self(source, target[:, :-1]).log_softmax(dim=2)  # (n, u - 1, vocabulary)
        wanted = target[:, 1:]
        picked = log_p.gather(2, wanted.unsqueeze(2)).squeeze(2)  # (n, u - 1)
        return -picked[wanted != PADDING].mean()

    @torch.no_grad()
    def greedy_decode(self, source: Tensor, max_length: int = 20) -> list[list[int]]:
        """Sentence by sentence."""
        check_decoding(max_length)
        check_source(source, self.encoder.vocabulary)
        return [self.translate(row[None], max_length) for row in source]

    def translate(self, source: Tensor, max_length: int) -> list[int]:
        """One sentence."""
        state, memory = self.start(source)
        written: list[int] = []
        token = BEGIN
        while len(written) < max_length:
            logits, state = self.step(torch.tensor([token]), state, memory)
            token = int(logits[0].argmax())
            if token == END:
                break
            written.append(token)
        return written

    @torch.no_grad()
    def beam_decode(
        self, source: Tensor, width: int, alpha: float = 1.0, max_length: int = 20
    ) -> tuple[list[list[int]], list[float]]:
        """Sentence by sentence."""
        check_decoding(max_length, width, alpha)
        check_source(source, self.encoder.vocabulary)
        best = [self.search(row[None], width, alpha, max_length) for row in source]
        return [ids for ids, _ in best], [score for _, score in best]

    def search(
        self, source: Tensor, width: int, alpha: float, max_length: int
    ) -> tuple[list[int], float]:
        """The best of one sentence, and its score. The beginnings go through a step together."""
        state, memory = self.start(source)  # (1, hidden_size)
        beginnings: list[tuple[float, list[int]]] = [(0.0, [])]
        candidates = []
        for _ in range(max_length):
            last = torch.tensor([ids[-1] if ids else BEGIN for _, ids in beginnings])
            together = tuple(part.expand(len(last), *part.shape[1:]) for part in memory)
            logits, state = self.step(last, state, together)
            extensions = []
            for k, row in enumerate(logits.log_softmax(dim=1).tolist()):
                total, ids = beginnings[k]
                extensions += [(total + log_p, [*ids, token], k) for token, log_p in enumerate(row)]
            extensions.sort(key=lambda extension: extension[0], reverse=True)
            kept = extensions[:width]
            candidates += [(total, ids) for total, ids, _ in kept if ids[-1] == END]
            open_ones = [extension for extension in kept if extension[1][-1] != END]
            beginnings = [(total, ids) for total, ids, _ in open_ones]
            if not beginnings:
                break
            state = state[[k for _, _, k in open_ones]]
        candidates += beginnings
        score, ids = max((total / len(ids) ** alpha, ids) for total, ids in candidates)
        return [token for token in ids if token != END], score


# Exercise 4.7


class Config:
    """How to train. Build it with keywords: Config(epochs=2, learning_rate=0.001)."""

    def __init__(
        self,
        epochs: int = 2,
        batch_size: int = 64,
        learning_rate: float = 0.005,
        max_norm: float = 1.0,
        seed: int = 0,
    ) -> None:
        if epochs < 1 or batch_size < 1 or learning_rate <= 0 or max_norm <= 0:
            raise ValueError(
                "epochs and batch_size must be at least 1, learning_rate and max_norm above 0, "
                f"got {epochs}, {batch_size}, {learning_rate} and {max_norm}"
            )
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.max_norm = max_norm
        self.seed = seed


def without_padding(ids: Tensor) -> Tensor:
    """The same sentences, without the columns that hold nothing but padding."""
    return ids[:, : int((ids != PADDING).sum(dim=1).max())]


def train(model: Seq2Seq, source: Tensor, target: Tensor, config: Config) -> dict:
    """A list of batches for each epoch, and a scheduler for the learning rate."""
    check_source(source, model.encoder.vocabulary)
    check_target(target, model.target_vocabulary, n=len(source))
    torch.manual_seed(config.seed)
    batches: list[Tensor] = []
    for _ in range(config.epochs):
        batches += torch.randperm(len(source)).split(config.batch_size)
    optimizer = torch.optim.Adam(model.parameters(), lr=config.learning_rate)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda k: 1 - k / len(batches))
    history: dict[str, list[float]] = {"loss": [], "norm": [], "learning_rate": []}
    with TrainingDisplay(len(batches), title="translation") as display:
        for k, batch in enumerate(batches):
            optimizer.zero_grad()
            loss = model.loss(without_padding(source[batch]), without_padding(target[batch]))
            if not math.isfinite(loss.item()):
                raise ValueError(f"the loss is {loss.item()} at step {k}: the run diverged")
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), config.max_norm)
            history["loss"].append(loss.item())
            history["norm"].append(norm.item())
            history["learning_rate"].append(scheduler.get_last_lr()[0])
            optimizer.step()
            scheduler.step()
            display.step(loss=loss.item())
    return history


def exact_match(model: Seq2Seq, source: Tensor, target: Tensor) -> float:
    """Every target row is compared with what a right answer would look like as a row."""
    check_source(source, model.encoder.vocabulary)
    check_target(target, model.target_vocabulary, n=len(source))
    answers = model.greedy_decode(source, max_length=target.shape[1])
    rows = []
    for answer in answers:
        row = [BEGIN, *answer, END]
        rows.append(row + [PADDING] * (target.shape[1] - len(row)))
    return sum(row == wanted for row, wanted in zip(rows, target.tolist(), strict=True)) / len(rows)


def alignment(model: Seq2Seq, source: Tensor, max_length: int = 20) -> tuple[list[int], Tensor]:
    """Translate first; then teacher forcing with the translation gives all weights at once."""
    if not model.has_attention:
        raise ValueError("this model has no attention")
    check_ids(source, model.encoder.vocabulary, ndim=1)
    [tokens] = model.greedy_decode(source[None], max_length)
    if len(tokens) < max_length:
        tokens.append(END)
    with torch.no_grad():
        keys, final = model.encoder(source[None])
        inputs = torch.tensor([[BEGIN, *tokens[:-1]]])
        _, weights = model.decoder(inputs, final, keys, (source != PADDING)[None])
    return tokens, weights[0]
