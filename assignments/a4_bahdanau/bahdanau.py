"""Assignment 4: translation with a recurrent encoder and decoder, and attention, in PyTorch.

Conventions of the whole file
    ids are int64 tensors. Three of them are special in both vocabularies: PADDING, BEGIN and END.
    A source is a row of ids (t,), without BEGIN and END. A target is BEGIN, its ids, END, and has
    no other END.
    A batch is a tensor (n, t), one sentence in each row. Shorter sentences have PADDING after them,
    and padding stands nowhere else. How much of it there is changes no result.
    Steps are counted from 0, those of a decoder and those of training.
    A mask is a tensor of bool, or None: True means "may be attended to". A row in which nothing may
    be attended to gets weights of zero, and a context of zeros: no NaN, in gradients neither.
    Logits are the scores before the softmax. Probabilities come from the softmax over the whole
    vocabulary, the special ids included.
    A module has the parameters of its docstring, with these names and shapes, no others and no
    buffers: tests load weights by these names. How they are first drawn is up to you: PyTorch's own
    way is good.
    Everything works in float32 and, after model.double(), in float64.
    No function changes a tensor that it is given, and none remembers anything between two calls.
    Only train changes something: the weights of its model.
    Bad input raises ValueError: what is no tensor, a mask that is not of bool or doesn't fit, ids
    that are not int64 or out of range, sources without a single id or with padding between ids,
    targets with padding before END, with ids after it or without it, tensors for different numbers
    of sentences, an empty batch. The given checks see to that; where a function has more to refuse,
    its docstring says so.

Write the attention yourself: PyTorch's attention modules and functions are not allowed.
nn.Linear, nn.Embedding, nn.GRU and nn.GRUCell are.
"""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from common.training.training_progress import TrainingDisplay

PADDING, BEGIN, END = 0, 1, 2  # as in common/data/numbers.py


def check_scores(scores: Float[Tensor, "..."]) -> None:
    """Given: raise ValueError unless scores are a tensor with at least one axis."""
    if not isinstance(scores, Tensor):
        raise ValueError(f"scores are a tensor, not a {type(scores).__name__}")
    if scores.ndim == 0:
        raise ValueError("scores have at least one axis")


def check_mask(mask: Bool[Tensor, "..."] | None, shape: tuple[int, ...]) -> None:
    """Given: raise ValueError unless the mask is None, or of bool and broadcasts to this shape."""
    if mask is None:
        return
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        raise ValueError(f"a mask is a tensor of bool, not {getattr(mask, 'dtype', type(mask))}")
    sizes = zip(reversed(mask.shape), reversed(shape), strict=False)
    if mask.ndim > len(shape) or any(size not in (1, full) for size, full in sizes):
        raise ValueError(f"a mask of shape {tuple(mask.shape)} doesn't fit {tuple(shape)}")


def check_ids(ids: Int64[Tensor, "..."], vocabulary: int, ndim: int) -> None:
    """Given: raise ValueError unless these are ids of the vocabulary, with no axis of length 0."""
    if not isinstance(ids, Tensor):
        raise ValueError(f"ids are a tensor, not a {type(ids).__name__}")
    if ids.dtype != torch.int64:
        raise ValueError(f"ids are int64, not {ids.dtype}")
    if ids.ndim != ndim or ids.numel() == 0:
        raise ValueError(f"ids have {ndim} axes, none of length 0, but got {tuple(ids.shape)}")
    if ids.min() < 0 or ids.max() >= vocabulary:
        raise ValueError(f"ids lie from 0 to {vocabulary - 1}, not {ids.min()} to {ids.max()}")


def check_source(source: Int64[Tensor, "n t"], vocabulary: int) -> None:
    """Given: check_ids, and every row has an id, and padding only after its ids."""
    check_ids(source, vocabulary, ndim=2)
    real = source != PADDING  # (n, t)
    if not real[:, 0].all():
        raise ValueError("a source is empty, or begins with padding")
    if (real[:, 1:] & ~real[:, :-1]).any():
        raise ValueError("a source has padding between its ids")


def check_target(target: Int64[Tensor, "n u"], vocabulary: int, n: int) -> None:
    """Given: check_ids, and n rows of BEGIN, ids and one END, with padding only after it."""
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
    """Given: raise ValueError unless all have as many rows, and no axis of length 0."""
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise ValueError(f"inputs are tensors, not a {type(tensor).__name__}")
    shapes = [tuple(tensor.shape) for tensor in tensors]
    if any(shape[:1] != shapes[0][:1] or 0 in shape for shape in shapes):
        raise ValueError(
            f"inputs have as many rows each, and no axis of length 0, but got {shapes}"
        )


def check_logits(logits: Float[Tensor, "..."]) -> None:
    """Given: raise ValueError if a logit is not finite: then no id is the likeliest."""
    if not logits.isfinite().all():
        raise ValueError("the model gives logits that are not finite: has training diverged?")


# Exercise 4.1


def masked_softmax(
    scores: Float[Tensor, "*batch t"], mask: Bool[Tensor, "..."] | None = None
) -> Float[Tensor, "*batch t"]:
    """The softmax over the last axis, over those places alone where the mask is True.

    mask: broadcasts to the shape of scores. None lets every place take part.
    Places where it is False get exactly 0, and their scores, any finite numbers, make no
    difference. The other places of a row sum to 1. A row without any place gets zeros, and its
    scores get a gradient of zero. Scores as large as 1e4 or as small as -1e4 are no problem.
    """
    check_scores(scores)
    check_mask(mask, scores.shape)
    raise NotImplementedError("masked_softmax: exercise 4.1 is yours to write")


# Exercise 4.2


class AdditiveAttention(nn.Module):
    """Scores each key against a query with a small network, and averages the keys.

    score_j = v . tanh(W_q query + W_k key_j), without biases
    weights = the softmax of the scores over the keys that the mask allows
    context = the sum over j of weight_j * key_j: the keys are the values too

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
        """One query for each sentence. Returns (context, weights).

        Raises ValueError if query and keys differ in n, and if n or t is 0.
        """
        check_batch(query, keys)
        check_mask(mask, keys.shape[:2])
        raise NotImplementedError("AdditiveAttention.forward: exercise 4.2 is yours to write")


# Exercise 4.3


class Encoder(nn.Module):
    """Reads a source in both directions: an embedding, then a bidirectional GRU of one layer.

    Parameters
        embedding.weight (vocabulary, embedding_size)
        gru.weight_ih_l0, gru.weight_hh_l0, gru.bias_ih_l0, gru.bias_hh_l0, and the same four with
            _reverse at their end: those of nn.GRU(embedding_size, hidden_size, bidirectional=True)
    """

    def __init__(self, vocabulary: int, embedding_size: int, hidden_size: int) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        raise NotImplementedError("Encoder.__init__: exercise 4.3 is yours to write")

    def forward(
        self, source: Int64[Tensor, "n t"]
    ) -> tuple[Float[Tensor, "n t 2*hidden_size"], Float[Tensor, "n 2*hidden_size"]]:
        """Returns (states, final).

        states[i, j]: the state of the forward GRU after reading ids 0 ... j of sentence i, then
            that of the backward GRU after reading its ids from the last down to j. Zeros where
            sentence i has padding.
        final[i]: the state of the forward GRU after the last id of sentence i, then that of the
            backward GRU after its first id.
        Both GRUs begin with zeros. A sentence gets the same numbers in every batch, with or without
        padding: pack_padded_sequence is one way to see to that.
        """
        check_source(source, self.vocabulary)
        raise NotImplementedError("Encoder.forward: exercise 4.3 is yours to write")


# Exercise 4.4


class FixedContextDecoder(nn.Module):
    """Writes a target from one vector for the whole source: the bottleneck.

    With c the context, which is the same at every step, y_k the id that step k reads, which is the
    one that was written last (y_0 is BEGIN), and [a; b] for a and b side by side:

    state_0 = tanh(W c + b)
    state_(k + 1) = GRU([embedding(y_k); c], state_k)
    logits_k = V [state_(k + 1); c] + d

    Step k = 0, 1, ... begins with state_k and ends with state_(k + 1).

    Parameters
        embedding.weight (vocabulary, embedding_size)
        initial.weight (hidden_size, context_size), initial.bias (hidden_size,): W and b
        cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh: those of
            nn.GRUCell(embedding_size + context_size, hidden_size)
        output.weight (vocabulary, hidden_size + context_size), output.bias (vocabulary,): V and d
    """

    def __init__(
        self, vocabulary: int, embedding_size: int, context_size: int, hidden_size: int
    ) -> None:
        super().__init__()
        self.vocabulary = vocabulary
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
    ) -> tuple[Float[Tensor, "n vocabulary"], Float[Tensor, "n hidden_size"]]:
        """One step: token is y_k, state is state_k. Returns (logits_k, state_(k + 1)).

        Raises ValueError if the inputs differ in n.
        """
        check_ids(token, self.vocabulary, ndim=1)
        check_batch(token, state, context)
        raise NotImplementedError("FixedContextDecoder.step: exercise 4.4 is yours to write")

    def forward(
        self, inputs: Int64[Tensor, "n u"], context: Float[Tensor, "n context_size"]
    ) -> Float[Tensor, "n u vocabulary"]:
        """Teacher forcing: u steps from state_0, where step k reads inputs[:, k]. Returns logits.

        logits[:, k] are those of step k. What stands in inputs where a target has ended makes no
        difference to the steps before.
        Raises ValueError if the inputs differ in n.
        """
        check_ids(inputs, self.vocabulary, ndim=2)
        check_batch(inputs, context)
        raise NotImplementedError("FixedContextDecoder.forward: exercise 4.4 is yours to write")


# Exercise 4.5


class AttentionDecoder(nn.Module):
    """Writes a target, and looks at the source anew at every step.

    As FixedContextDecoder, but with a context of its own for every step. The query is the state
    before the step, the keys are the encoder's states:

    state_0 = tanh(W final + b)
    c_k, weights_k = attention(state_k, keys, mask)
    state_(k + 1) = GRU([embedding(y_k); c_k], state_k)
    logits_k = V [state_(k + 1); c_k] + d

    Parameters: those of FixedContextDecoder, where context_size is the size of a key and of final,
        and attention.query.weight, attention.key.weight, attention.score.weight: those of
        AdditiveAttention(hidden_size, context_size, attention_size)
    """

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
    ) -> tuple[Float[Tensor, "n vocabulary"], Float[Tensor, "n hidden_size"], Float[Tensor, "n t"]]:
        """One step: token is y_k, state is state_k. Returns (logits_k, state_(k + 1), weights_k).

        Raises ValueError if the inputs differ in n, and if t is 0.
        """
        check_ids(token, self.vocabulary, ndim=1)
        check_batch(token, state, keys)
        check_mask(mask, keys.shape[:2])
        raise NotImplementedError("AttentionDecoder.step: exercise 4.5 is yours to write")

    def forward(
        self,
        inputs: Int64[Tensor, "n u"],
        final: Float[Tensor, "n context_size"],
        keys: Float[Tensor, "n t context_size"],
        mask: Bool[Tensor, "n t"] | None = None,
    ) -> tuple[Float[Tensor, "n u vocabulary"], Float[Tensor, "n u t"]]:
        """Teacher forcing, as in FixedContextDecoder. Returns (logits, weights).

        logits[:, k] and weights[:, k] are those of step k, which reads inputs[:, k].
        Raises ValueError if the inputs differ in n, and if t is 0.
        """
        check_ids(inputs, self.vocabulary, ndim=2)
        check_batch(inputs, final, keys)
        check_mask(mask, keys.shape[:2])
        raise NotImplementedError("AttentionDecoder.forward: exercise 4.5 is yours to write")


# Exercise 4.6


class Seq2Seq(nn.Module):
    """Given but for loss, greedy_decode and beam_decode: an encoder and a decoder.

    The decoder is an AttentionDecoder, whose keys are the encoder's states, or with
    attention=False a FixedContextDecoder, whose context is the encoder's final state.

    Parameters: encoder.* and decoder.*
    """

    def __init__(
        self,
        source_vocabulary: int,
        target_vocabulary: int,
        embedding_size: int = 32,
        hidden_size: int = 64,
        attention: bool = True,
    ) -> None:
        """hidden_size: of each of the encoder's two GRUs, of the decoder, and of the attention."""
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

    def forward(
        self, source: Int64[Tensor, "n t"], inputs: Int64[Tensor, "n u"]
    ) -> Float[Tensor, "n u vocabulary"]:
        """Given: the logits of the decoder, with teacher forcing."""
        states, final = self.encoder(source)
        if not self.has_attention:
            return self.decoder(inputs, final)
        logits, _ = self.decoder(inputs, final, states, source != PADDING)
        return logits

    def start(
        self, source: Int64[Tensor, "n t"]
    ) -> tuple[Float[Tensor, "n hidden_size"], tuple[Tensor, ...]]:
        """Given: (the decoder's first state, memory). Memory is what every step needs besides.

        Memory is a tuple of tensors whose first axis is the sentence.
        """
        states, final = self.encoder(source)
        memory = (states, source != PADDING) if self.has_attention else (final,)
        return self.decoder.start(final), memory

    def step(
        self,
        token: Int64[Tensor, " n"],
        state: Float[Tensor, "n hidden_size"],
        memory: tuple[Tensor, ...],
    ) -> tuple[Float[Tensor, "n vocabulary"], Float[Tensor, "n hidden_size"]]:
        """Given: one step of the decoder, whichever it is. Returns (logits, the new state).

        Raises ValueError if a logit is not finite: then no id is the likeliest.
        """
        logits, state, *_ = self.decoder.step(token, state, *memory)
        check_logits(logits)
        return logits, state

    def loss(self, source: Int64[Tensor, "n t"], target: Int64[Tensor, "n u"]) -> Float[Tensor, ""]:
        """The mean cross-entropy of the targets in nats, with teacher forcing: a scalar tensor.

        Step k reads target[:, k] and is to predict target[:, k + 1]. The mean is over all ids of
        the batch that are to be predicted: END is one of them, BEGIN and padding are not. So long
        sentences count for more than short ones.
        """
        check_target(target, self.target_vocabulary, n=len(source))
        raise NotImplementedError("Seq2Seq.loss: exercise 4.6 is yours to write")

    def greedy_decode(self, source: Int64[Tensor, "n t"], max_length: int = 20) -> list[list[int]]:
        """Translate: at every step write the id with the highest logit, the lowest id on a tie.

        A sentence is done when it has written END, or after max_length steps.
        Returns for each sentence what it has written, as a list of int, without END. Each id but
        END is written like any other, PADDING and BEGIN too.
        Raises ValueError if max_length is below 1, and if a logit is not finite: self.step does.
        """
        if max_length < 1:
            raise ValueError(f"max_length must be at least 1, got {max_length}")
        check_source(source, self.encoder.vocabulary)
        raise NotImplementedError("Seq2Seq.greedy_decode: exercise 4.6 is yours to write")

    def beam_decode(
        self,
        source: Int64[Tensor, "n t"],
        width: int,
        alpha: float = 1.0,
        max_length: int = 20,
    ) -> tuple[list[list[int]], list[float]]:
        """Translate with beam search: follow the `width` likeliest beginnings of each sentence.

        A beginning is a row of ids and its log-probability, the sum of those of its ids. The search
        starts with one, the empty row, of log-probability 0. At every step each beginning is
        extended by each id of the vocabulary. Of all these extensions (of one sentence) the `width`
        with the highest log-probability are kept, or all if they are fewer. Those of them that end
        with END are finished, the others are the beginnings of the next step. The search ends when
        no beginning is left, or after max_length steps.

        The candidates are all that were finished, at whatever step, and the beginnings that are
        left after max_length steps. The best has the highest score

            score = log-probability / length**alpha

        where length counts its ids, END included. On a tie of log-probabilities or scores either
        may be taken. So, without ties, width 1 gives what greedy_decode gives.

        Returns (the best of each sentence as a list of int without END, their scores as floats).
        Raises ValueError if width or max_length is below 1, if alpha is below 0 or not finite, and
        if a logit is not finite: self.step does.
        """
        if width < 1 or max_length < 1 or not 0 <= alpha < math.inf:
            raise ValueError(
                "width and max_length must be at least 1, alpha at least 0 and finite, "
                f"got {width}, {max_length} and {alpha}"
            )
        check_source(source, self.encoder.vocabulary)
        raise NotImplementedError("Seq2Seq.beam_decode: exercise 4.6 is yours to write")


# Exercise 4.7


class Config:
    """Given: how to train. Build it with keywords: Config(epochs=2, learning_rate=0.001)."""

    def __init__(
        self,
        epochs: int = 2,
        batch_size: int = 64,
        learning_rate: float = 0.005,
        max_norm: float = 1.0,
        seed: int = 0,
    ) -> None:
        """Raises ValueError for settings that make no sense."""
        if epochs < 1 or batch_size < 1 or learning_rate <= 0 or max_norm <= 0:
            raise ValueError(
                "epochs and batch_size must be at least 1, learning_rate and max_norm above 0, "
                f"got {epochs}, {batch_size}, {learning_rate} and {max_norm}"
            )
        self.epochs = epochs  # how often every pair is used
        self.batch_size = batch_size
        self.learning_rate = learning_rate  # of the first step; it falls to 0 in a straight line
        self.max_norm = max_norm  # gradients are clipped to this norm
        self.seed = seed  # decides the order of the pairs


def without_padding(ids: Int64[Tensor, "n t"]) -> Int64[Tensor, "n longest"]:
    """Given: the same sentences, without the columns that hold nothing but padding."""
    return ids[:, : int((ids != PADDING).sum(dim=1).max())]


def train(
    model: Seq2Seq, source: Int64[Tensor, "n t"], target: Int64[Tensor, "n u"], config: Config
) -> dict:
    """Fit a model to pairs: target[i] is the translation of source[i].

    Each epoch goes once through all pairs, in mini-batches of config.batch_size (the last may be
    smaller) and in a new random order; the same config.seed gives the same run.
    Each mini-batch gives one step: the loss, its gradients, clipped so that the norm of all of them
    together is at most config.max_norm, and an update with torch.optim.Adam. Step k = 0, 1, ... of
    `steps` steps in all has the learning rate config.learning_rate * (1 - k / steps).

    Cut each mini-batch down with without_padding: it changes no result, and saves time.
    Shows its progress with TrainingDisplay:
        with TrainingDisplay(steps, title="...") as display:
            display.step(loss=loss)  # once in each step

    Returns history, a dict with one float for each step in each of these lists:
        "loss": the loss of the mini-batch before the update
        "norm": the norm of the gradients before clipping
        "learning_rate"
    A new model that is trained on the first 4,000 pairs of the train part of the number words
    (common/data/numbers.py) with Config(epochs=1, batch_size=32, learning_rate=0.007), all other
    settings of Seq2Seq and Config as they are given, translates at least 90 of 100 numbers that it
    has never seen without a mistake, with greedy_decode.
    Raises ValueError as soon as a loss is not finite. Its message says "step k", with the number
    of the step in place of k, counted from 0 as above: "step 0" for the first one.
    """
    check_source(source, model.encoder.vocabulary)
    check_target(target, model.target_vocabulary, n=len(source))
    raise NotImplementedError("train: exercise 4.7 is yours to write")


def exact_match(
    model: Seq2Seq, source: Int64[Tensor, "n t"], target: Int64[Tensor, "n u"]
) -> float:
    """The share of sources that greedy_decode translates without a single mistake, from 0 to 1.

    A translation is right when its ids are those of the target between BEGIN and END, all of them
    and no others. So u - 1 steps are enough: what has not ended by then is wrong.
    """
    check_source(source, model.encoder.vocabulary)
    check_target(target, model.target_vocabulary, n=len(source))
    raise NotImplementedError("exact_match: exercise 4.7 is yours to write")


def alignment(
    model: Seq2Seq, source: Int64[Tensor, " t"], max_length: int = 20
) -> tuple[list[int], Float[Tensor, "u t"]]:
    """What the model looks at while it translates one source greedily.

    source: the ids of one sentence. Padding after them gets weights of 0.
    Returns (tokens, matrix): the ids that greedy decoding writes, as a list of int, here with the
    END that it stopped at (there is none if it stopped after max_length steps), and the attention
    weights of these steps. matrix[k, j] is how much weight source[j] had when tokens[k] was
    written, so every row sums to 1. It carries no gradient.
    Raises ValueError if the model has no attention, if max_length is below 1, and if a logit is
    not finite: check_logits does.
    """
    if not model.has_attention:
        raise ValueError("this model has no attention")
    if max_length < 1:
        raise ValueError(f"max_length must be at least 1, got {max_length}")
    check_ids(source, model.encoder.vocabulary, ndim=1)
    check_source(source[None], model.encoder.vocabulary)
    raise NotImplementedError("alignment: exercise 4.7 is yours to write")
