"""Assignment 4: translation with a recurrent encoder and decoder, and attention, in PyTorch.

Conventions of the whole file
- Ids: int64 tensors. Three ids are special in both vocabularies: PAD, BOS and EOS.
- Source: a row of ids (t,), without BOS and EOS, which no check looks for.
- Target: BOS, its ids, EOS. It has no other EOS.
- Batch: a tensor (n, t), one sentence per row. Shorter sentences are followed by PAD, which occurs
  nowhere else in sources and targets (a decoder may generate it). The amount of padding changes no
  result.
- Mask: a boolean tensor, or None. True means "may be attended to". A fully masked row gets weights
  of zero and a context of zeros: no NaN, not even in gradients.
- Logits: the scores before the softmax. Probabilities come from the softmax over the whole
  vocabulary, special ids included.
- Steps: decoder steps are counted from 0, training steps from 1.
- Parameters: exactly those of a module's docstring, with these names and shapes, and no buffers,
  because tests load weights by name. How you initialize them is up to you; PyTorch's default works.
- Types: everything works in float32 and, after model.double(), in float64.
- Side effects: none. No function modifies its inputs or remembers anything between calls. Only
  train changes something: the weights of its model. What it leaves in .grad is up to you, and so is
  the mode.
- Bad input: raises ValueError. The given checks see to that; where a function has more to check,
  its docstring says so.

Write the attention yourself: PyTorch's attention modules and functions are not allowed. nn.Linear,
nn.Embedding, nn.GRU and nn.GRUCell are.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from common.training.training_progress import TrainingDisplay

PAD, BOS, EOS = 0, 1, 2  # as in common/data/numbers.py


def check_scores(scores: Float[Tensor, "..."]) -> None:
    """Given: raise ValueError unless scores are a tensor with at least one axis."""
    if not isinstance(scores, Tensor):
        raise ValueError(f"scores must be a tensor, got {type(scores).__name__}")
    if scores.ndim == 0:
        raise ValueError("scores must have at least one axis, got a tensor with none")


def check_mask(mask: Bool[Tensor, "..."] | None, shape: tuple[int, ...]) -> None:
    """Given: raise ValueError unless mask is None, or boolean and broadcasts to this shape."""
    if mask is None:
        return
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        found = getattr(mask, "dtype", type(mask).__name__)
        raise ValueError(f"a mask must be a boolean tensor, got {found}")
    sizes = zip(reversed(mask.shape), reversed(shape), strict=False)
    if mask.ndim > len(shape) or any(size not in (1, full) for size, full in sizes):
        raise ValueError(f"a mask must broadcast to {tuple(shape)}, got shape {tuple(mask.shape)}")


def check_ids(ids: Int64[Tensor, "..."], vocab_size: int, ndim: int) -> None:
    """Given: raise ValueError unless these are ids of the vocabulary, with no axis of length 0."""
    if not isinstance(ids, Tensor):
        raise ValueError(f"ids must be a tensor, got {type(ids).__name__}")
    if ids.dtype != torch.int64:
        raise ValueError(f"ids must be torch.int64, got {ids.dtype}")
    if ids.ndim != ndim or ids.numel() == 0:
        raise ValueError(f"ids must have {ndim} axes, none of length 0, got {tuple(ids.shape)}")
    if ids.min() < 0 or ids.max() >= vocab_size:
        raise ValueError(f"ids must be from 0 to {vocab_size - 1}, got {ids.min()} to {ids.max()}")


def check_source(source: Int64[Tensor, "n t"], vocab_size: int) -> None:
    """Given: check_ids, and every row has an id, and padding only after its ids."""
    check_ids(source, vocab_size, ndim=2)
    real = source != PAD  # (n, t)
    if not real[:, 0].all():
        raise ValueError("a source must start with an id other than PAD")
    if (real[:, 1:] & ~real[:, :-1]).any():
        raise ValueError("a source must have padding only after its ids, got PAD between ids")


def check_target(target: Int64[Tensor, "n u"], vocab_size: int, n: int) -> None:
    """Given: check_ids, and n rows of BOS, ids and one EOS, with padding only after it."""
    check_ids(target, vocab_size, ndim=2)
    if len(target) != n:
        raise ValueError(f"there must be a target for each of the {n} sources, got {len(target)}")
    real = target != PAD  # (n, u)
    if (real[:, 1:] & ~real[:, :-1]).any():
        raise ValueError("a target must have padding only after its ids, got PAD between ids")
    ends = target == EOS  # (n, u)
    if (target[:, 0] != BOS).any() or (ends.sum(dim=1) != 1).any():
        raise ValueError("a target must start with BOS and have one EOS")
    if (ends[:, :-1] & real[:, 1:]).any():
        raise ValueError("a target must end with EOS, got ids after it")


def check_batch(*tensors: Tensor) -> None:
    """Given: raise ValueError unless all have equally many rows, and no axis of length 0."""
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise ValueError(f"inputs must be tensors, got {type(tensor).__name__}")
    shapes = [tuple(tensor.shape) for tensor in tensors]
    if any(shape[:1] != shapes[0][:1] or 0 in shape for shape in shapes):
        raise ValueError(
            f"inputs must have equally many rows and no axis of length 0, got {shapes}"
        )


def check_logits(logits: Float[Tensor, "..."]) -> None:
    """Given: raise ValueError if a logit is not finite: then no id is the most likely."""
    if not logits.isfinite().all():
        raise ValueError("logits must be finite, got NaN or infinity: has training diverged?")


# Exercise 4.1


def masked_softmax(
    scores: Float[Tensor, "*batch t"], mask: Bool[Tensor, "..."] | None = None
) -> Float[Tensor, "*batch t"]:
    """The softmax over the last axis, restricted to positions where the mask is True.

    scores: the last axis has at least one position.
    mask: broadcasts to the shape of scores. None means that no position is masked.
    Masked positions get exactly 0, and their scores, any finite numbers, make no difference. The
    other positions of a row sum to 1. A fully masked row gets zeros, and its scores get a gradient
    of zero. Scores as large as 1e4 or as small as -1e4 are no problem.
    """
    check_scores(scores)
    check_mask(mask, scores.shape)
    raise NotImplementedError("masked_softmax: exercise 4.1 is yours to write")


# Exercise 4.2


class AdditiveAttention(nn.Module):
    """Additive attention (Bahdanau et al., 2014): a small network scores each key against a query.

    score_j = v . tanh(W_q query + W_k key_j), without biases
    weights = softmax of the scores over the keys that are not masked
    context = sum over j of weight_j * key_j: the keys are also the values

    Parameters
        query.weight (hidden_size, query_size): W_q
        key.weight (hidden_size, key_size): W_k
        score.weight (1, hidden_size): v
    """

    def __init__(self, query_size: int, key_size: int, hidden_size: int) -> None:
        super().__init__()
        raise NotImplementedError("AdditiveAttention.__init__: exercise 4.2 is yours to write")

    def forward(
        self,
        query: Float[Tensor, "n query_size"],
        keys: Float[Tensor, "n t key_size"],
        mask: Bool[Tensor, "n t"] | None = None,
    ) -> tuple[Float[Tensor, "n key_size"], Float[Tensor, "n t"]]:
        """One query per sentence. Returns (context, weights).

        mask: (n, t), or a shape that broadcasts to it, as in masked_softmax.
        Raises ValueError if query and keys differ in n, and if n or t is 0.
        """
        check_batch(query, keys)
        check_mask(mask, keys.shape[:2])
        raise NotImplementedError("AdditiveAttention.forward: exercise 4.2 is yours to write")


# Exercise 4.3


class Encoder(nn.Module):
    """Encodes a source in both directions: an embedding, then a one-layer bidirectional GRU.

    Parameters
        embedding.weight (vocab_size, embedding_size)
        gru.weight_ih_l0, gru.weight_hh_l0, gru.bias_ih_l0, gru.bias_hh_l0, and the same four with
            _reverse appended: those of nn.GRU(embedding_size, hidden_size, bidirectional=True)
    """

    def __init__(self, vocab_size: int, embedding_size: int, hidden_size: int) -> None:
        super().__init__()
        self.vocab_size = vocab_size
        raise NotImplementedError("Encoder.__init__: exercise 4.3 is yours to write")

    def forward(
        self, source: Int64[Tensor, "n t"]
    ) -> tuple[Float[Tensor, "n t 2*hidden_size"], Float[Tensor, "n 2*hidden_size"]]:
        """Returns (states, final).

        states[i, j]: the hidden state of the forward GRU after ids 0 ... j of sentence i,
            concatenated with that of the backward GRU after the ids from the last one down to j.
            Zeros at the padding of sentence i.
        final[i]: the hidden state of the forward GRU after the last id of sentence i, concatenated
            with that of the backward GRU after its first id.
        Both GRUs start from zeros. A sentence gets the same numbers in every batch, with or without
        padding: pack_padded_sequence is one way to achieve that.
        """
        check_source(source, self.vocab_size)
        raise NotImplementedError("Encoder.forward: exercise 4.3 is yours to write")


# Exercise 4.4


class FixedContextDecoder(nn.Module):
    """Generates a target from one vector for the whole source: the bottleneck.

    c is the context, the same at every step. y_k is the id that step k reads, the one generated
    before it (y_0 is BOS). [a; b] is the concatenation of a and b:

    state_0 = tanh(W c + b)
    state_(k + 1) = GRU([embedding(y_k); c], state_k)
    logits_k = V [state_(k + 1); c] + d

    Step k = 0, 1, ... starts from state_k and ends with state_(k + 1).

    Parameters
        embedding.weight (vocab_size, embedding_size)
        initial.weight (hidden_size, context_size), initial.bias (hidden_size,): W and b
        cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh: those of
            nn.GRUCell(embedding_size + context_size, hidden_size)
        output.weight (vocab_size, hidden_size + context_size), output.bias (vocab_size,): V and d
    """

    def __init__(
        self, vocab_size: int, embedding_size: int, context_size: int, hidden_size: int
    ) -> None:
        super().__init__()
        self.vocab_size = vocab_size
        raise NotImplementedError("FixedContextDecoder.__init__: exercise 4.4 is yours to write")

    def start(self, context: Float[Tensor, "n context_size"]) -> Float[Tensor, "n hidden_size"]:
        """The state before the first step, state_0."""
        check_batch(context)
        raise NotImplementedError("FixedContextDecoder.start: exercise 4.4 is yours to write")

    def step(
        self,
        token: Int64[Tensor, " n"],
        state: Float[Tensor, "n hidden_size"],
        context: Float[Tensor, "n context_size"],
    ) -> tuple[Float[Tensor, "n vocab_size"], Float[Tensor, "n hidden_size"]]:
        """One step: token is y_k, state is state_k. Returns (logits_k, state_(k + 1)).

        Raises ValueError if the inputs differ in n.
        """
        check_ids(token, self.vocab_size, ndim=1)
        check_batch(token, state, context)
        raise NotImplementedError("FixedContextDecoder.step: exercise 4.4 is yours to write")

    def forward(
        self, inputs: Int64[Tensor, "n u"], context: Float[Tensor, "n context_size"]
    ) -> Float[Tensor, "n u vocab_size"]:
        """Teacher forcing: u steps from state_0, where step k reads inputs[:, k]. Returns logits.

        logits[:, k] are those of step k. PAD is read like any other id; no step depends on later
        inputs.
        Raises ValueError if the inputs differ in n.
        """
        check_ids(inputs, self.vocab_size, ndim=2)
        check_batch(inputs, context)
        raise NotImplementedError("FixedContextDecoder.forward: exercise 4.4 is yours to write")


# Exercise 4.5


class AttentionDecoder(nn.Module):
    """Generates a target, and attends to the source at every step.

    Like FixedContextDecoder, but every step has its own context. The query is the state before the
    step; the keys are the encoder's states:

    state_0 = tanh(W final + b)
    c_k, weights_k = attention(state_k, keys, mask)
    state_(k + 1) = GRU([embedding(y_k); c_k], state_k)
    logits_k = V [state_(k + 1); c_k] + d

    Parameters
        those of FixedContextDecoder, where context_size is the size of a key and of final
        attention.query.weight, attention.key.weight, attention.score.weight: those of
            AdditiveAttention(hidden_size, context_size, attention_size)
    """

    def __init__(
        self,
        vocab_size: int,
        embedding_size: int,
        context_size: int,
        hidden_size: int,
        attention_size: int,
    ) -> None:
        super().__init__()
        self.vocab_size = vocab_size
        raise NotImplementedError("AttentionDecoder.__init__: exercise 4.5 is yours to write")

    def start(self, final: Float[Tensor, "n context_size"]) -> Float[Tensor, "n hidden_size"]:
        """The state before the first step, state_0."""
        check_batch(final)
        raise NotImplementedError("AttentionDecoder.start: exercise 4.5 is yours to write")

    def step(
        self,
        token: Int64[Tensor, " n"],
        state: Float[Tensor, "n hidden_size"],
        keys: Float[Tensor, "n t context_size"],
        mask: Bool[Tensor, "n t"] | None = None,
    ) -> tuple[Float[Tensor, "n vocab_size"], Float[Tensor, "n hidden_size"], Float[Tensor, "n t"]]:
        """One step: token is y_k, state is state_k. Returns (logits_k, state_(k + 1), weights_k).

        Raises ValueError if the inputs differ in n, and if t is 0.
        """
        check_ids(token, self.vocab_size, ndim=1)
        check_batch(token, state, keys)
        check_mask(mask, keys.shape[:2])
        raise NotImplementedError("AttentionDecoder.step: exercise 4.5 is yours to write")

    def forward(
        self,
        inputs: Int64[Tensor, "n u"],
        final: Float[Tensor, "n context_size"],
        keys: Float[Tensor, "n t context_size"],
        mask: Bool[Tensor, "n t"] | None = None,
    ) -> tuple[Float[Tensor, "n u vocab_size"], Float[Tensor, "n u t"]]:
        """Teacher forcing, as in FixedContextDecoder. Returns (logits, weights).

        logits[:, k] and weights[:, k] are those of step k, which reads inputs[:, k].
        Raises ValueError if the inputs differ in n, and if t is 0.
        """
        check_ids(inputs, self.vocab_size, ndim=2)
        check_batch(inputs, final, keys)
        check_mask(mask, keys.shape[:2])
        raise NotImplementedError("AttentionDecoder.forward: exercise 4.5 is yours to write")


# Exercise 4.6


class Seq2Seq(nn.Module):
    """An encoder and a decoder. Given, except for loss, greedy_decode and beam_decode.

    The decoder is an AttentionDecoder, whose keys are the encoder's states. With attention=False
    it is a FixedContextDecoder, whose context is the encoder's final state.

    Parameters: encoder.* and decoder.*
    """

    def __init__(
        self,
        source_vocab_size: int,
        target_vocab_size: int,
        embedding_size: int = 32,
        hidden_size: int = 64,
        attention: bool = True,
    ) -> None:
        """hidden_size: of each of the encoder's two GRUs, of the decoder, and of the attention."""
        super().__init__()
        context_size = 2 * hidden_size
        sizes = target_vocab_size, embedding_size, context_size, hidden_size
        self.encoder = Encoder(source_vocab_size, embedding_size, hidden_size)
        if attention:
            self.decoder = AttentionDecoder(*sizes, attention_size=hidden_size)
        else:
            self.decoder = FixedContextDecoder(*sizes)
        self.target_vocab_size = target_vocab_size
        self.has_attention = attention

    def forward(
        self, source: Int64[Tensor, "n t"], inputs: Int64[Tensor, "n u"]
    ) -> Float[Tensor, "n u vocab_size"]:
        """Given: the logits of the decoder, with teacher forcing."""
        states, final = self.encoder(source)
        if not self.has_attention:
            return self.decoder(inputs, final)
        logits, _ = self.decoder(inputs, final, states, source != PAD)
        return logits

    def start(
        self, source: Int64[Tensor, "n t"]
    ) -> tuple[Float[Tensor, "n hidden_size"], tuple[Tensor, ...]]:
        """Given: (the decoder's initial state, memory). Every step also needs the memory.

        Memory is a tuple of tensors whose first axis is the sentence.
        """
        states, final = self.encoder(source)
        memory = (states, source != PAD) if self.has_attention else (final,)
        return self.decoder.start(final), memory

    def step(
        self,
        token: Int64[Tensor, " n"],
        state: Float[Tensor, "n hidden_size"],
        memory: tuple[Tensor, ...],
    ) -> tuple[Float[Tensor, "n vocab_size"], Float[Tensor, "n hidden_size"]]:
        """Given: one step of either decoder. Returns (logits, the new state).

        Raises ValueError if a logit is not finite: then no id is the most likely.
        """
        logits, state, *_ = self.decoder.step(token, state, *memory)
        check_logits(logits)
        return logits, state

    def loss(self, source: Int64[Tensor, "n t"], target: Int64[Tensor, "n u"]) -> Float[Tensor, ""]:
        """The mean cross-entropy of the targets in nats, with teacher forcing: a scalar tensor.

        Step k reads target[:, k] and predicts target[:, k + 1]. The mean is over all predicted ids
        of the batch: EOS is one of them, the BOS at the start and padding are not. So long
        sentences weigh more than short ones.
        """
        check_target(target, self.target_vocab_size, n=len(source))
        raise NotImplementedError("Seq2Seq.loss: exercise 4.6 is yours to write")

    def greedy_decode(self, source: Int64[Tensor, "n t"], max_length: int = 20) -> list[list[int]]:
        """Translate: at every step take the id with the highest logit, the lowest id on a tie.

        A sentence is finished when EOS is generated, or after max_length steps.
        Returns a list of int for each sentence: the generated ids, without EOS. All other ids are
        kept, even PAD and BOS.
        Raises ValueError if max_length is below 1, and if a logit is not finite: self.step does. It
        may also do so for a finished sentence that you keep in the batch.
        """
        if max_length < 1:
            raise ValueError(f"max_length must be at least 1, got {max_length}")
        check_source(source, self.encoder.vocab_size)
        raise NotImplementedError("Seq2Seq.greedy_decode: exercise 4.6 is yours to write")

    def beam_decode(
        self,
        source: Int64[Tensor, "n t"],
        beam_width: int,
        length_penalty: float = 1.0,
        max_length: int = 20,
    ) -> tuple[list[list[int]], list[float]]:
        """Translate with beam search: keep the `beam_width` best hypotheses of each sentence.

        A hypothesis is a row of ids and its log-probability, the sum of those of its ids. The
        search starts with one live hypothesis: the empty row, of log-probability 0. At every step
        each live hypothesis is extended by each id of the vocabulary. Of all these extensions (of
        one sentence) the `beam_width` with the highest log-probability are kept, or all if there
        are fewer. Those that end with EOS are finished; the others are the live hypotheses of the
        next step, which again keeps `beam_width` extensions, however many are finished. The search
        ends when no live hypothesis is left, or after max_length steps.

        The candidates are all hypotheses that were finished, at any step, and those that are still
        live after max_length steps. The best has the highest score

            score = log-probability / length**length_penalty

        where length counts its ids, EOS included. On a tie of log-probabilities or scores, and also
        where only rounding decides, either may be taken. Otherwise beam_width 1 gives what
        greedy_decode gives.

        Returns (the best of each sentence as a list of int without EOS, their scores as floats).
        Raises ValueError if beam_width or max_length is below 1, if length_penalty is below 0 or
        not finite, and if a logit is not finite: self.step does. It may also do so for finished
        sentences and hypotheses that you keep in the batch. No test has a length_penalty so large
        that length**length_penalty overflows.
        """
        if beam_width < 1 or max_length < 1 or not 0 <= length_penalty < math.inf:
            raise ValueError(
                "beam_width and max_length must be at least 1, length_penalty at least 0 and "
                f"finite, got {beam_width}, {max_length} and {length_penalty}"
            )
        check_source(source, self.encoder.vocab_size)
        raise NotImplementedError("Seq2Seq.beam_decode: exercise 4.6 is yours to write")


# Exercise 4.7


@dataclass(frozen=True)
class TrainConfig:
    """Given: the settings of train, for example TrainConfig(epochs=2, learning_rate=0.001)."""

    epochs: int = 2  # passes over all pairs
    batch_size: int = 64
    learning_rate: float = 0.005  # of the first step; it falls linearly, to 0 after the last one
    max_norm: float = 1.0  # gradients are clipped to this norm
    seed: int = 0  # decides the order of the pairs

    def __post_init__(self) -> None:
        """Raise ValueError for settings that make no sense."""
        for name, value in (("epochs", self.epochs), ("batch_size", self.batch_size)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        for name, value in (("learning_rate", self.learning_rate), ("max_norm", self.max_norm)):
            if value <= 0:
                raise ValueError(f"{name} must be above 0, got {value}")


def without_padding(ids: Int64[Tensor, "n t"]) -> Int64[Tensor, "n longest"]:
    """Given: the same sentences, without the columns that hold only padding."""
    return ids[:, : int((ids != PAD).sum(dim=1).max())]


def train(
    model: Seq2Seq, source: Int64[Tensor, "n t"], target: Int64[Tensor, "n u"], config: TrainConfig
) -> dict:
    """Fit a model to pairs: target[i] is the translation of source[i].

    Each epoch goes once through all pairs, in mini-batches of config.batch_size (the last may be
    smaller) and in a new random order; the same config.seed gives the same run. Preferably draw the
    order from a torch.Generator of your own, which leaves PyTorch's global random state alone.
    Each mini-batch is one step: the loss, its gradients, clipped so that the norm of all of them
    together is at most config.max_norm (as by clip_grad_norm_), and an update with
    torch.optim.Adam. The learning rate falls linearly: step t = 1, 2, ..., steps has
    config.learning_rate * (1 - (t - 1) / steps).

    Advice: cut each mini-batch down with without_padding; it changes no result and saves time.
    Shows its progress with TrainingDisplay:
        with TrainingDisplay(steps, title="...") as display:
            display.step(loss=loss)  # once per step

    Returns history, a dict of lists with one float per step:
        "loss": the loss of the mini-batch before the update
        "norm": the norm of the gradients before clipping
        "learning_rate"
    A new model trained on the first 4,000 training pairs of the number words
    (common/data/numbers.py) with TrainConfig(epochs=1, batch_size=32, learning_rate=0.007), and
    the defaults of Seq2Seq and TrainConfig otherwise, translates at least 90 % of unseen numbers
    without a mistake, with greedy_decode.
    Raises ValueError as soon as a loss is not finite. Its message says "step N", with N the number
    of that step, from 1 on.
    """
    check_source(source, model.encoder.vocab_size)
    check_target(target, model.target_vocab_size, n=len(source))
    raise NotImplementedError("train: exercise 4.7 is yours to write")


def exact_match(
    model: Seq2Seq, source: Int64[Tensor, "n t"], target: Int64[Tensor, "n u"]
) -> float:
    """The fraction of sources that greedy_decode translates without a mistake, from 0 to 1.

    A translation is right if its ids are exactly those of the target between BOS and EOS. A target
    has at most u - 1 ids after BOS, EOS included. So a max_length of u - 1 is enough: what has not
    ended after so many steps is wrong.
    """
    check_source(source, model.encoder.vocab_size)
    check_target(target, model.target_vocab_size, n=len(source))
    raise NotImplementedError("exact_match: exercise 4.7 is yours to write")


def alignment(
    model: Seq2Seq, source: Int64[Tensor, " t"], max_length: int = 20
) -> tuple[list[int], Float[Tensor, "u t"]]:
    """The attention weights while the model translates one source greedily.

    source: the ids of one sentence. Padding after them gets weights of 0.
    Returns (tokens, matrix). tokens: the ids that greedy decoding generates, as a list of int,
    including EOS if one of the max_length steps generated it. matrix[k, j]: the weight of source[j]
    at the step that generated tokens[k], so every row sums to 1. It carries no gradient.
    Raises ValueError if the model has no attention, if max_length is below 1, and if a logit is
    not finite: call check_logits, since decoder.step doesn't.
    """
    if not model.has_attention:
        raise ValueError("this model has no attention")
    if max_length < 1:
        raise ValueError(f"max_length must be at least 1, got {max_length}")
    check_ids(source, model.encoder.vocab_size, ndim=1)
    check_source(source[None], model.encoder.vocab_size)
    raise NotImplementedError("alignment: exercise 4.7 is yours to write")
