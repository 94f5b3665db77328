"""Assignment 4 with a heap: beam search keeps the state of every beginning on its own.

The softmax runs over -inf, and a row of NaN becomes zeros after it. The encoder sorts a batch by
length before it packs it. The loss is that of each sentence, added up.
"""

import heapq
import math

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

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
    """-inf outside the mask. On the way back masked_fill stops the NaN of a row without places."""
    check_scores(scores)
    check_mask(mask, scores.shape)
    if mask is None:
        return torch.softmax(scores, dim=-1)
    weights = torch.softmax(scores.masked_fill(~mask, -math.inf), dim=-1)
    return torch.where(mask.any(dim=-1, keepdim=True), weights, torch.zeros_like(weights))


# Exercise 4.2


class AdditiveAttention(nn.Module):
    """Both projections as plain matrix products, the rest as einsum."""

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
        projected = query @ self.query.weight.T  # (n, hidden_size)
        hidden = torch.tanh(projected[:, None, :] + keys @ self.key.weight.T)
        scores = torch.einsum("nth,h->nt", hidden, self.score.weight[0])
        weights = masked_softmax(scores, mask)
        return torch.einsum("nt,ntk->nk", weights, keys), weights


# Exercise 4.3


class Encoder(nn.Module):
    """Sorts by length, packs, and puts the sentences back into their order."""

    def __init__(self, vocabulary: int, embedding_size: int, hidden_size: int) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.embedding = nn.Embedding(vocabulary, embedding_size, padding_idx=PADDING)
        self.gru = nn.GRU(embedding_size, hidden_size, bidirectional=True)

    def forward(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """(states, final)."""
        check_source(source, self.vocabulary)
        lengths, order = (source != PADDING).sum(dim=1).sort(descending=True)
        back = order.argsort()
        vectors = self.embedding(source[order].T)  # (t, n, embedding_size)
        states, last = self.gru(pack_padded_sequence(vectors, lengths))
        states, _ = pad_packed_sequence(states, total_length=source.shape[1])
        final = last.transpose(0, 1).flatten(start_dim=1)  # (n, 2 * hidden_size)
        return states.transpose(0, 1)[back], final[back]


# Exercise 4.4


class FixedContextDecoder(nn.Module):
    """One vector for the whole source."""

    def __init__(
        self, vocabulary: int, embedding_size: int, context_size: int, hidden_size: int
    ) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.embedding = nn.Embedding(vocabulary, embedding_size)
        self.initial = nn.Linear(context_size, hidden_size)
        self.cell = nn.GRUCell(embedding_size + context_size, hidden_size)
        self.output = nn.Linear(hidden_size + context_size, vocabulary)

    def start(self, context: Tensor) -> Tensor:
        """The state before the first step."""
        check_batch(context)
        return torch.tanh(self.initial(context))

    def step(self, token: Tensor, state: Tensor, context: Tensor) -> tuple[Tensor, Tensor]:
        """(Logits, the new state)."""
        check_ids(token, self.vocabulary, ndim=1)
        check_batch(token, state, context)
        state = self.cell(torch.cat([self.embedding(token), context], dim=-1), state)
        return self.output(torch.cat([state, context], dim=-1)), state

    def forward(self, inputs: Tensor, context: Tensor) -> Tensor:
        """Teacher forcing: all states first, then all logits at once."""
        check_ids(inputs, self.vocabulary, ndim=2)
        check_batch(inputs, context)
        repeated = context[:, None].expand(-1, inputs.shape[1], -1)  # (n, u, context_size)
        read = torch.cat([self.embedding(inputs), repeated], dim=-1)
        states = []
        state = self.start(context)
        for x in read.transpose(0, 1):
            state = self.cell(x, state)
            states.append(state)
        return self.output(torch.cat([torch.stack(states, dim=1), repeated], dim=-1))


# Exercise 4.5


class AttentionDecoder(FixedContextDecoder):
    """A FixedContextDecoder that gets another context at each step."""

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
        check_ids(token, self.vocabulary, ndim=1)
        check_batch(token, state, keys)
        context, weights = self.attention(state, keys, mask)
        logits, state = super().step(token, state, context)
        return logits, state, weights

    def forward(
        self, inputs: Tensor, final: Tensor, keys: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Teacher forcing: (logits, weights)."""
        check_ids(inputs, self.vocabulary, ndim=2)
        check_batch(inputs, final, keys)
        check_mask(mask, keys.shape[:2])
        steps = []
        state = self.start(final)
        for k in range(inputs.shape[1]):
            logits, state, weights = self.step(inputs[:, k], state, keys, mask)
            steps.append((logits, weights))
        all_logits, all_weights = zip(*steps, strict=True)
        return torch.stack(all_logits, 1), torch.stack(all_weights, 1)


# Exercise 4.6


class Beginning:
    """What a sentence may begin with: its ids, their log-probability, the state after them."""

    def __init__(self, ids: list[int], total: float, state: Tensor) -> None:
        self.ids = ids
        self.total = total
        self.state = state  # (1, hidden_size)

    def is_finished(self) -> bool:
        """Whether it ends with END."""
        return bool(self.ids) and self.ids[-1] == END

    def score(self, alpha: float) -> float:
        """The log-probability by the length."""
        return self.total / len(self.ids) ** alpha


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
        """The losses of all sentences, added up, by the number of real ids."""
        check_target(target, self.target_vocabulary, n=len(source))
        log_p = self(source, target[:, :-1]).log_softmax(dim=-1)  # (n, u - 1, vocabulary)
        total = log_p.new_zeros(())
        for row, wanted in zip(log_p, target[:, 1:], strict=True):
            real = wanted[wanted != PADDING]
            total = total - row[torch.arange(len(real)), real].sum()
        return total / (target[:, 1:] != PADDING).sum()

    def greedy_decode(self, source: Tensor, max_length: int = 20) -> list[list[int]]:
        """The whole batch for max_length steps; what comes after END is cut off."""
        check_decoding(max_length)
        check_source(source, self.encoder.vocabulary)
        with torch.no_grad():
            state, memory = self.start(source)
            columns = [torch.full((len(source),), BEGIN)]
            for _ in range(max_length):
                logits, state = self.step(columns[-1], state, memory)
                columns.append(logits.max(dim=1).indices)
        rows = torch.stack(columns[1:], dim=1).tolist()
        return [row[: row.index(END)] if END in row else row for row in rows]

    def beam_decode(
        self, source: Tensor, width: int, alpha: float = 1.0, max_length: int = 20
    ) -> tuple[list[list[int]], list[float]]:
        """Sentence by sentence, beginning by beginning."""
        check_decoding(max_length, width, alpha)
        check_source(source, self.encoder.vocabulary)
        translations, scores = [], []
        with torch.inference_mode():
            for row in source:
                best = self.search(row[row != PADDING][None], width, alpha, max_length)
                translations.append(best.ids[:-1] if best.is_finished() else best.ids)
                scores.append(best.score(alpha))
        return translations, scores

    def search(self, source: Tensor, width: int, alpha: float, max_length: int) -> Beginning:
        """The best of one sentence."""
        state, memory = self.start(source)
        beginnings, finished = [Beginning([], 0.0, state)], []
        for _ in range(max_length):
            heap: list[tuple[float, int, Beginning]] = []  # the worst is on top
            for beginning in beginnings:
                for extension in self.extensions(beginning, memory, width):
                    # The middle number only keeps Python from comparing beginnings.
                    heapq.heappush(heap, (extension.total, id(extension), extension))
                    if len(heap) > width:
                        heapq.heappop(heap)
            kept = [extension for _, _, extension in heap]
            finished += [extension for extension in kept if extension.is_finished()]
            beginnings = [extension for extension in kept if not extension.is_finished()]
            # No extension can get a higher score than this: its log-probability only falls.
            reach = max((b.total / max_length**alpha for b in beginnings), default=-math.inf)
            if not beginnings or reach < max((b.score(alpha) for b in finished), default=-math.inf):
                break
        left = beginnings if len(kept[0].ids) == max_length else []
        return max(finished + left, key=lambda candidate: candidate.score(alpha))

    def extensions(
        self, beginning: Beginning, memory: tuple[Tensor, ...], width: int
    ) -> list[Beginning]:
        """The likeliest extensions of a beginning: more than `width` are never kept."""
        token = beginning.ids[-1] if beginning.ids else BEGIN
        logits, state = self.step(torch.tensor([token]), beginning.state, memory)
        log_p = logits[0].log_softmax(dim=0)
        likeliest = log_p.topk(min(width, len(log_p)))
        return [
            Beginning([*beginning.ids, token], beginning.total + value, state)
            for value, token in zip(
                likeliest.values.tolist(), likeliest.indices.tolist(), strict=True
            )
        ]


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
    """A generator of its own for each epoch; the norm is computed and applied here."""
    check_source(source, model.encoder.vocabulary)
    check_target(target, model.target_vocabulary, n=len(source))
    optimizer = torch.optim.Adam(model.parameters())
    each = len(range(0, len(source), config.batch_size))
    steps = config.epochs * each
    losses, norms, rates = [], [], []
    with TrainingDisplay(steps, title="translation") as display:
        for step in range(steps):
            if step % each == 0:
                generator = torch.Generator().manual_seed(1000 * config.seed + step // each)
                order = torch.randperm(len(source), generator=generator)
            start = step % each * config.batch_size
            batch = order[start : start + config.batch_size]
            loss = model.loss(without_padding(source[batch]), without_padding(target[batch]))
            if not loss.isfinite():
                raise ValueError(f"the loss is {loss.item()} at step {step}: the run diverged")
            model.zero_grad()
            loss.backward()
            gradients = [p.grad for p in model.parameters() if p.grad is not None]
            norm = math.sqrt(sum(gradient.square().sum().item() for gradient in gradients))
            if norm > config.max_norm:
                for gradient in gradients:
                    gradient *= config.max_norm / norm
            rate = config.learning_rate * (steps - step) / steps
            optimizer.param_groups[0]["lr"] = rate
            optimizer.step()
            losses.append(loss.item())
            norms.append(norm)
            rates.append(rate)
            display.step(loss=loss.item())
    return {"loss": losses, "norm": norms, "learning_rate": rates}


def exact_match(model: Seq2Seq, source: Tensor, target: Tensor) -> float:
    """In pieces of 100 sentences."""
    check_source(source, model.encoder.vocabulary)
    check_target(target, model.target_vocabulary, n=len(source))
    wanted = [row[1 : row.index(END)] for row in target.tolist()]
    found: list[list[int]] = []
    for piece in source.split(100):
        found += model.greedy_decode(piece, max_length=target.shape[1])
    return sum(map(list.__eq__, found, wanted)) / len(wanted)


def alignment(model: Seq2Seq, source: Tensor, max_length: int = 20) -> tuple[list[int], Tensor]:
    """A hook on the attention notes its weights while greedy_decode runs."""
    if not model.has_attention:
        raise ValueError("this model has no attention")
    check_ids(source, model.encoder.vocabulary, ndim=1)
    check_source(source[None], model.encoder.vocabulary)
    rows: list[Tensor] = []
    hook = model.decoder.attention.register_forward_hook(
        lambda module, inputs, outputs: rows.append(outputs[1][0])
    )
    try:
        [tokens] = model.greedy_decode(source[None], max_length)
    finally:
        hook.remove()
    if len(tokens) < max_length:
        tokens = [*tokens, END]
    return tokens, torch.stack(rows[: len(tokens)])
