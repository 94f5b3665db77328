"""Assignment 4 with as few loops as may be: decoding keeps everything in tensors.

The keys are projected once for all steps of a sequence, the final state is picked out of the
states, beam search keeps its best in tensors, and a DataLoader makes the mini-batches.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.utils.data import DataLoader, TensorDataset

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
    """exp(score - log of the sum of exp), with scores below 0 so that no digits are lost."""
    check_scores(scores)
    check_mask(mask, scores.shape)
    taken = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask.expand_as(scores)
    # A row without any place takes part with all its places, and is thrown away at the end.
    shown = taken | ~taken.any(dim=-1, keepdim=True)
    lowered = scores.masked_fill(~shown, torch.finfo(scores.dtype).min)
    lowered = lowered - lowered.amax(dim=-1, keepdim=True).detach()
    return (lowered - lowered.logsumexp(dim=-1, keepdim=True)).exp() * taken


# Exercise 4.2


class AdditiveAttention(nn.Module):
    """Takes keys that were projected before, so that a decoder does it once."""

    def __init__(self, query_size: int, key_size: int, hidden_size: int) -> None:
        super().__init__()
        self.query = nn.Linear(query_size, hidden_size, bias=False)
        self.key = nn.Linear(key_size, hidden_size, bias=False)
        self.score = nn.Linear(hidden_size, 1, bias=False)

    def forward(
        self,
        query: Tensor,
        keys: Tensor,
        mask: Tensor | None = None,
        projected: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """(context, weights)."""
        check_batch(query, keys)
        check_mask(mask, keys.shape[:2])
        if projected is None:
            projected = self.key(keys)
        scores = self.score(torch.tanh(projected + self.query(query).unsqueeze(1)))  # (n, t, 1)
        weights = masked_softmax(scores[..., 0], mask)
        return torch.bmm(keys.transpose(1, 2), weights.unsqueeze(2)).squeeze(2), weights


# Exercise 4.3


class Encoder(nn.Module):
    """The final state is read off the states."""

    def __init__(self, vocabulary: int, embedding_size: int, hidden_size: int) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.embedding = nn.Embedding(vocabulary, embedding_size)
        self.gru = nn.GRU(embedding_size, hidden_size, batch_first=True, bidirectional=True)

    def forward(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """(states, final)."""
        check_source(source, self.vocabulary)
        n, t = source.shape
        h = self.gru.hidden_size
        lengths = source.count_nonzero(dim=1)
        packed = pack_padded_sequence(
            F.embedding(source, self.embedding.weight), lengths, True, enforce_sorted=False
        )
        states, _ = pad_packed_sequence(self.gru(packed)[0], True, total_length=t)
        forward = states[torch.arange(n), lengths - 1, :h]
        return states, torch.cat([forward, states[:, 0, h:]], dim=1)


# Exercise 4.4


class FixedContextDecoder(nn.Module):
    """One vector for the whole source: `advance` moves the state, `output` scores it."""

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
        return F.linear(context, self.initial.weight, self.initial.bias).tanh()

    def advance(self, vectors: Tensor, state: Tensor, context: Tensor) -> Tensor:
        """The new state, from embedded ids."""
        return self.cell(torch.cat((vectors, context), 1), state)

    def step(self, token: Tensor, state: Tensor, context: Tensor) -> tuple[Tensor, Tensor]:
        """(Logits, the new state)."""
        check_ids(token, self.vocabulary, ndim=1)
        check_batch(token, state, context)
        state = self.advance(self.embedding(token), state, context)
        return self.output(torch.cat((state, context), 1)), state

    def forward(self, inputs: Tensor, context: Tensor) -> Tensor:
        """Teacher forcing: the logits."""
        check_ids(inputs, self.vocabulary, ndim=2)
        check_batch(inputs, context)
        states = [self.start(context)]
        for vectors in self.embedding(inputs).unbind(1):
            states.append(self.advance(vectors, states[-1], context))
        together = torch.stack(states[1:], 1)  # (n, u, hidden_size)
        repeated = context.unsqueeze(1).repeat(1, inputs.shape[1], 1)
        return self.output(torch.cat((together, repeated), 2))


# Exercise 4.5


class AttentionDecoder(nn.Module):
    """The logits of all steps come from one matrix product."""

    def __init__(
        self,
        vocabulary: int,
        embedding_size: int,
        context_size: int,
        hidden_size: int,
        attention_size: int,
    ) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.attention = AdditiveAttention(hidden_size, context_size, attention_size)
        self.output = nn.Linear(hidden_size + context_size, vocabulary)
        self.initial = nn.Linear(context_size, hidden_size)
        self.cell = nn.GRUCell(embedding_size + context_size, hidden_size)
        self.embedding = nn.Embedding(vocabulary, embedding_size)

    def start(self, final: Tensor) -> Tensor:
        """The state before the first step."""
        check_batch(final)
        return self.initial(final).tanh()

    def step(
        self, token: Tensor, state: Tensor, keys: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """(Logits, the new state, weights): a sequence of one step."""
        check_ids(token, self.vocabulary, ndim=1)
        check_batch(token, state, keys)
        check_mask(mask, keys.shape[:2])
        logits, weights, state = self.walk(token[:, None], state, keys, mask)
        return logits[:, 0], state, weights[:, 0]

    def forward(
        self, inputs: Tensor, final: Tensor, keys: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Teacher forcing: (logits, weights)."""
        check_ids(inputs, self.vocabulary, ndim=2)
        check_batch(inputs, final, keys)
        check_mask(mask, keys.shape[:2])
        logits, weights, _ = self.walk(inputs, self.start(final), keys, mask)
        return logits, weights

    def walk(
        self, inputs: Tensor, state: Tensor, keys: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """From any state: (logits, weights, the last state)."""
        projected = self.attention.key(keys)
        features, looked_at = [], []
        for vectors in self.embedding(inputs).unbind(1):
            context, weights = self.attention(state, keys, mask, projected)
            state = self.cell(torch.cat((vectors, context), 1), state)
            features.append(torch.cat((state, context), 1))
            looked_at.append(weights)
        return self.output(torch.stack(features, 1)), torch.stack(looked_at, 1), state


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
        """The cross-entropy of every place, weighted by whether it is real."""
        check_target(target, self.target_vocabulary, n=len(source))
        inputs, wanted = target[:, :-1], target[:, 1:]
        logits = self(source, inputs).transpose(1, 2)  # (n, vocabulary, u - 1)
        losses = F.cross_entropy(logits, wanted, reduction="none")
        real = (wanted != PADDING).to(losses.dtype)
        return (losses * real).sum() / real.sum()

    @torch.no_grad()
    def greedy_decode(self, source: Tensor, max_length: int = 20) -> list[list[int]]:
        """A tensor is filled column by column, with END wherever a sentence is done."""
        check_decoding(max_length)
        check_source(source, self.encoder.vocabulary)
        written = torch.full((len(source), max_length + 1), END)
        written[:, 0] = BEGIN
        done = torch.zeros(len(source), dtype=torch.bool)
        state, memory = self.start(source)
        for k in range(max_length):
            logits, state = self.step(written[:, k], state, memory)
            written[:, k + 1] = torch.where(done, END, logits.argmax(1))
            done = written[:, k + 1] == END
            if done.all():
                break
        lengths = (written[:, 1:] != END).sum(1)
        return [row[1 : length + 1].tolist() for row, length in zip(written, lengths, strict=True)]

    @torch.no_grad()
    def beam_decode(
        self, source: Tensor, width: int, alpha: float = 1.0, max_length: int = 20
    ) -> tuple[list[list[int]], list[float]]:
        """All beginnings of all sentences at once; only those that exist have rows."""
        check_decoding(max_length, width, alpha)
        check_source(source, self.encoder.vocabulary)
        n, v = len(source), self.target_vocabulary
        state, memory = self.start(source)
        sentence = torch.arange(n)  # of each row
        total = torch.zeros(n, dtype=torch.float64)
        written = torch.full((n, 1), BEGIN)
        best = torch.full((n,), -math.inf, dtype=torch.float64)
        answers = torch.full((n, max_length), END)
        for length in range(1, max_length + 1):
            rows = tuple(part[sentence] for part in memory)
            logits, state = self.step(written[:, -1], state, rows)
            totals = (total[:, None] + logits.log_softmax(1)).flatten()  # (rows * v,)
            owner = sentence.repeat_interleave(v)
            # By sentence, and within a sentence by log-probability: two sorts, the second stable.
            order = totals.argsort(descending=True)
            order = order[owner[order].argsort(stable=True)]
            counts = owner.bincount(minlength=n)
            place = torch.arange(len(order)) - (counts.cumsum(0) - counts)[owner[order]]
            kept = order[place < width]

            written = torch.cat((written[kept // v], (kept % v)[:, None]), 1)
            state, total, sentence = state[kept // v], totals[kept], owner[kept]
            finished = written[:, -1] == END
            scores = total / length**alpha
            for row in torch.nonzero(finished | (length == max_length)).flatten().tolist():
                i = sentence[row]
                if scores[row] > best[i]:
                    best[i] = scores[row]
                    answers[i] = END
                    answers[i, :length] = written[row, 1:]
            going_on = ~finished
            written, state = written[going_on], state[going_on]
            total, sentence = total[going_on], sentence[going_on]
            if len(sentence) == 0:
                break
        lengths = (answers != END).sum(1).tolist()
        return [answers[i, :length].tolist() for i, length in enumerate(lengths)], best.tolist()


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
    """Mini-batches from a DataLoader."""
    check_source(source, model.encoder.vocabulary)
    check_target(target, model.target_vocabulary, n=len(source))
    loader = DataLoader(
        TensorDataset(source, target),
        batch_size=config.batch_size,
        shuffle=True,
        generator=torch.Generator().manual_seed(config.seed),
    )
    steps = config.epochs * len(loader)
    optimizer = torch.optim.Adam(model.parameters(), lr=config.learning_rate)
    history: dict[str, list[float]] = {"loss": [], "norm": [], "learning_rate": []}
    pairs = (pair for _ in range(config.epochs) for pair in loader)
    with TrainingDisplay(steps, title="translation") as display:
        for step, (sources, targets) in enumerate(pairs):
            loss = model.loss(without_padding(sources), without_padding(targets))
            if loss.isnan() or loss.isinf():
                raise ValueError(f"the loss is {loss.item()} at step {step}: the run diverged")
            optimizer.zero_grad(set_to_none=False)
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), config.max_norm)
            optimizer.step()
            history["learning_rate"].append(optimizer.param_groups[0]["lr"])
            optimizer.param_groups[0]["lr"] = config.learning_rate * (1 - (step + 1) / steps)
            history["loss"].append(loss.item())
            history["norm"].append(norm.item())
            display.step(loss=loss.item())
    return history


def exact_match(model: Seq2Seq, source: Tensor, target: Tensor) -> float:
    """Answers and targets as rows of one tensor each, END from the end of a sentence on."""
    check_source(source, model.encoder.vocabulary)
    check_target(target, model.target_vocabulary, n=len(source))
    wanted = target[:, 1:]
    wanted = torch.where((wanted == END).cumsum(1) > 0, END, wanted)
    found = torch.full_like(wanted, END)
    for i, answer in enumerate(model.greedy_decode(source, max_length=wanted.shape[1])):
        found[i, : len(answer)] = torch.tensor(answer)
    return (found == wanted).all(dim=1).double().mean().item()


def alignment(model: Seq2Seq, source: Tensor, max_length: int = 20) -> tuple[list[int], Tensor]:
    """The steps of a greedy decoding, noted in two lists."""
    if not model.has_attention:
        raise ValueError("this model has no attention")
    check_decoding(max_length)
    check_ids(source, model.encoder.vocabulary, ndim=1)
    check_source(source[None], model.encoder.vocabulary)
    tokens, rows = [BEGIN], []
    with torch.no_grad():
        state, memory = model.start(source[None])
        for _ in range(max_length):
            logits, state, weights = model.decoder.step(torch.tensor(tokens[-1:]), state, *memory)
            check_logits(logits)
            tokens.append(logits.argmax().item())
            rows.append(weights)
            if tokens[-1] == END:
                break
    return tokens[1:], torch.cat(rows)
