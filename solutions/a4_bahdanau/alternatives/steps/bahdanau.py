"""One at a time: the encoder's GRUs step by step, decoding sentence by sentence with a heap.

The softmax is exp and a sum. Nothing is packed: the mask holds the encoder's state at padding. Each
hypothesis of the beam search has a state of its own, and the search stops when none that is live
can win. A hook records the attention weights, and a scheduler sets the learning rate.
"""

import heapq


def check_decoding(max_length: int, beam_width: int = 1, length_penalty: float = 1.0) -> None:
    """Raise ValueError for settings that make no sense."""
    if beam_width < 1 or max_length < 1 or not 0 <= length_penalty < math.inf:
        raise ValueError(
            "beam_width and max_length must be at least 1, length_penalty at least 0 and finite, "
            f"got {beam_width}, {max_length} and {length_penalty}"
        )


def masked_softmax(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """exp and a sum: in a fully masked row both are 0."""
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


class AdditiveAttention(nn.Module):
    """The sum that makes the context is written as a product and a sum."""

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


class Encoder(nn.Module):
    """nn.GRU holds the weights; the steps are ours."""

    def forward(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """(states, final)."""
        check_source(source, self.vocab_size)
        vectors = self.embedding(source)  # (n, t, embedding_size)
        columns = list(range(source.shape[1]))
        forward, last_forward = self.walk(vectors, source != PAD, columns, "_l0")
        backward, last_backward = self.walk(vectors, source != PAD, columns[::-1], "_l0_reverse")
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


class Hypothesis:
    """A row of ids, its log-probability, and the state after it."""

    def __init__(self, ids: list[int], total: float, state: Tensor) -> None:
        self.ids = ids
        self.total = total
        self.state = state  # (1, hidden_size)

    def is_finished(self) -> bool:
        """Whether it ends with EOS."""
        return bool(self.ids) and self.ids[-1] == EOS

    def score(self, length_penalty: float) -> float:
        """The log-probability divided by a power of the length."""
        return self.total / len(self.ids) ** length_penalty


class Seq2Seq(nn.Module):
    def loss(self, source: Tensor, target: Tensor) -> Tensor:
        """The log-probabilities of the real ids, picked out and averaged."""
        check_target(target, self.target_vocab_size, n=len(source))
        log_p = self(source, target[:, :-1]).log_softmax(dim=2)  # (n, u - 1, target_vocab_size)
        wanted = target[:, 1:]
        picked = log_p.gather(2, wanted.unsqueeze(2)).squeeze(2)  # (n, u - 1)
        return -picked[wanted != PAD].mean()

    @torch.no_grad()
    def greedy_decode(self, source: Tensor, max_length: int = 20) -> list[list[int]]:
        """Sentence by sentence."""
        check_decoding(max_length)
        check_source(source, self.encoder.vocab_size)
        return [self.translate(row[None], max_length) for row in source]

    def translate(self, source: Tensor, max_length: int) -> list[int]:
        """One sentence."""
        state, memory = self.start(source)
        written: list[int] = []
        token = BOS
        while len(written) < max_length:
            logits, state = self.step(torch.tensor([token]), state, memory)
            token = int(logits[0].argmax())
            if token == EOS:
                break
            written.append(token)
        return written

    def beam_decode(
        self, source: Tensor, beam_width: int, length_penalty: float = 1.0, max_length: int = 20
    ) -> tuple[list[list[int]], list[float]]:
        """Sentence by sentence, hypothesis by hypothesis."""
        check_decoding(max_length, beam_width, length_penalty)
        check_source(source, self.encoder.vocab_size)
        translations, scores = [], []
        with torch.inference_mode():
            for row in source:
                best = self.search(row[row != PAD][None], beam_width, length_penalty, max_length)
                translations.append(best.ids[:-1] if best.is_finished() else best.ids)
                scores.append(best.score(length_penalty))
        return translations, scores

    def search(
        self, source: Tensor, beam_width: int, length_penalty: float, max_length: int
    ) -> Hypothesis:
        """The best of one sentence."""
        state, memory = self.start(source)
        live, finished = [Hypothesis([], 0.0, state)], []
        for _ in range(max_length):
            heap: list[tuple[float, int, Hypothesis]] = []  # the worst is on top
            for hypothesis in live:
                for extension in self.extensions(hypothesis, memory, beam_width):
                    # The middle number only keeps Python from comparing hypotheses.
                    heapq.heappush(heap, (extension.total, id(extension), extension))
                    if len(heap) > beam_width:
                        heapq.heappop(heap)
            kept = [extension for _, _, extension in heap]
            finished += [extension for extension in kept if extension.is_finished()]
            live = [extension for extension in kept if not extension.is_finished()]
            # No extension can get a higher score than this: its log-probability only falls.
            reach = max((h.total / max_length**length_penalty for h in live), default=-math.inf)
            best = max((h.score(length_penalty) for h in finished), default=-math.inf)
            if not live or reach < best:
                break
        left = live if len(kept[0].ids) == max_length else []
        return max(finished + left, key=lambda candidate: candidate.score(length_penalty))

    def extensions(
        self, hypothesis: Hypothesis, memory: tuple[Tensor, ...], beam_width: int
    ) -> list[Hypothesis]:
        """The most likely extensions of a hypothesis: more than `beam_width` are never kept."""
        token = hypothesis.ids[-1] if hypothesis.ids else BOS
        logits, state = self.step(torch.tensor([token]), hypothesis.state, memory)
        log_p = logits[0].log_softmax(dim=0)
        best = log_p.topk(min(beam_width, len(log_p)))
        return [
            Hypothesis([*hypothesis.ids, token], hypothesis.total + value, state)
            for value, token in zip(best.values.tolist(), best.indices.tolist(), strict=True)
        ]


def train(model: Seq2Seq, source: Tensor, target: Tensor, config: TrainConfig) -> dict:
    """A list of batches for each epoch, and a scheduler for the learning rate."""
    check_source(source, model.encoder.vocab_size)
    check_target(target, model.target_vocab_size, n=len(source))
    torch.manual_seed(config.seed)
    batches: list[Tensor] = []
    for _ in range(config.epochs):
        batches += torch.randperm(len(source)).split(config.batch_size)
    optimizer = torch.optim.Adam(model.parameters(), lr=config.learning_rate)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda done: 1 - done / len(batches))
    history: dict[str, list[float]] = {"loss": [], "norm": [], "learning_rate": []}
    with TrainingDisplay(len(batches), title="translation") as display:
        for step, batch in enumerate(batches, start=1):
            optimizer.zero_grad()
            loss = model.loss(without_padding(source[batch]), without_padding(target[batch]))
            if not math.isfinite(loss.item()):
                raise ValueError(f"the loss is {loss.item()} at step {step}: the run diverged")
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), config.max_norm)
            history["loss"].append(loss.item())
            history["norm"].append(norm.item())
            history["learning_rate"].append(scheduler.get_last_lr()[0])
            optimizer.step()
            scheduler.step()
            display.step(loss=loss.item())
    return history


def alignment(model: Seq2Seq, source: Tensor, max_length: int = 20) -> tuple[list[int], Tensor]:
    """A hook on the attention records its weights while greedy_decode runs."""
    if not model.has_attention:
        raise ValueError("this model has no attention")
    check_ids(source, model.encoder.vocab_size, ndim=1)
    check_source(source[None], model.encoder.vocab_size)
    rows: list[Tensor] = []
    hook = model.decoder.attention.register_forward_hook(
        lambda module, inputs, outputs: rows.append(outputs[1][0])
    )
    try:
        [tokens] = model.greedy_decode(source[None], max_length)
    finally:
        hook.remove()
    if len(tokens) < max_length:
        tokens = [*tokens, EOS]
    return tokens, torch.stack(rows[: len(tokens)])
