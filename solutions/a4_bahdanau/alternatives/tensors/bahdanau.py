"""As few loops as possible: decoding keeps everything in tensors.

The softmax is exp(score - logsumexp). The keys are projected once for all steps of a sequence, and
the final state is picked from the states. In the beam search, only live hypotheses have rows. A
DataLoader makes the mini-batches.
"""

from torch.utils.data import DataLoader, TensorDataset


def check_decoding(max_length: int, beam_width: int = 1, length_penalty: float = 1.0) -> None:
    """Raise ValueError for settings that make no sense."""
    if beam_width < 1 or max_length < 1 or not 0 <= length_penalty < math.inf:
        raise ValueError(
            "beam_width and max_length must be at least 1, length_penalty at least 0 and finite, "
            f"got {beam_width}, {max_length} and {length_penalty}"
        )


def masked_softmax(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """exp(score - log of the sum of exp), with scores below 0 so that no digits are lost."""
    check_scores(scores)
    check_mask(mask, scores.shape)
    taken = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask.expand_as(scores)
    # A fully masked row takes part with all its positions, and is set to zero at the end.
    shown = taken | ~taken.any(dim=-1, keepdim=True)
    lowered = scores.masked_fill(~shown, torch.finfo(scores.dtype).min)
    lowered = lowered - lowered.amax(dim=-1, keepdim=True).detach()
    return (lowered - lowered.logsumexp(dim=-1, keepdim=True)).exp() * taken


class AdditiveAttention(nn.Module):
    """Takes keys that were projected before, so that a decoder does it once."""

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


class Encoder(nn.Module):
    """The final state is read off the states."""

    def forward(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """(states, final)."""
        check_source(source, self.vocab_size)
        n, t = source.shape
        h = self.gru.hidden_size
        lengths = source.count_nonzero(dim=1)
        packed = pack_padded_sequence(
            F.embedding(source, self.embedding.weight), lengths, True, enforce_sorted=False
        )
        states, _ = pad_packed_sequence(self.gru(packed)[0], True, total_length=t)
        forward = states[torch.arange(n), lengths - 1, :h]
        return states, torch.cat([forward, states[:, 0, h:]], dim=1)


class FixedContextDecoder(nn.Module):
    """The logits of all steps come from one matrix product."""

    def forward(self, inputs: Tensor, context: Tensor) -> Tensor:
        """Teacher forcing: the logits."""
        check_ids(inputs, self.vocab_size, ndim=2)
        check_batch(inputs, context)
        states = [self.start(context)]
        for vectors in self.embedding(inputs).unbind(1):
            states.append(self.cell(torch.cat((vectors, context), 1), states[-1]))
        together = torch.stack(states[1:], 1)  # (n, u, hidden_size)
        repeated = context.unsqueeze(1).repeat(1, inputs.shape[1], 1)
        return self.output(torch.cat((together, repeated), 2))


class AttentionDecoder(nn.Module):
    """The logits of all steps come from one matrix product."""

    def step(
        self, token: Tensor, state: Tensor, keys: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """(Logits, the new state, weights): a sequence of one step."""
        check_ids(token, self.vocab_size, ndim=1)
        check_batch(token, state, keys)
        check_mask(mask, keys.shape[:2])
        logits, weights, state = self.walk(token[:, None], state, keys, mask)
        return logits[:, 0], state, weights[:, 0]

    def forward(
        self, inputs: Tensor, final: Tensor, keys: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Teacher forcing: (logits, weights)."""
        check_ids(inputs, self.vocab_size, ndim=2)
        check_batch(inputs, final, keys)
        check_mask(mask, keys.shape[:2])
        logits, weights, _ = self.walk(inputs, self.start(final), keys, mask)
        return logits, weights

    def walk(
        self, inputs: Tensor, state: Tensor, keys: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """From any state: (logits, weights, the last state)."""
        projected = self.attention.key(keys)
        features, all_weights = [], []
        for vectors in self.embedding(inputs).unbind(1):
            context, weights = self.attention(state, keys, mask, projected)
            state = self.cell(torch.cat((vectors, context), 1), state)
            features.append(torch.cat((state, context), 1))
            all_weights.append(weights)
        return self.output(torch.stack(features, 1)), torch.stack(all_weights, 1), state


class Seq2Seq(nn.Module):
    def loss(self, source: Tensor, target: Tensor) -> Tensor:
        """The cross-entropy at every position, weighted by whether it is real."""
        check_target(target, self.target_vocab_size, n=len(source))
        inputs, wanted = target[:, :-1], target[:, 1:]
        logits = self(source, inputs).transpose(1, 2)  # (n, target_vocab_size, u - 1)
        losses = F.cross_entropy(logits, wanted, reduction="none")
        real = (wanted != PAD).to(losses.dtype)
        return (losses * real).sum() / real.sum()

    @torch.no_grad()
    def greedy_decode(self, source: Tensor, max_length: int = 20) -> list[list[int]]:
        """A tensor is filled column by column, with EOS wherever a sentence is done."""
        check_decoding(max_length)
        check_source(source, self.encoder.vocab_size)
        written = torch.full((len(source), max_length + 1), EOS)
        written[:, 0] = BOS
        done = torch.zeros(len(source), dtype=torch.bool)
        state, memory = self.start(source)
        for k in range(max_length):
            logits, state = self.step(written[:, k], state, memory)
            written[:, k + 1] = torch.where(done, EOS, logits.argmax(1))
            done = written[:, k + 1] == EOS
            if done.all():
                break
        lengths = (written[:, 1:] != EOS).sum(1)
        return [row[1 : length + 1].tolist() for row, length in zip(written, lengths, strict=True)]

    @torch.no_grad()
    def beam_decode(
        self, source: Tensor, beam_width: int, length_penalty: float = 1.0, max_length: int = 20
    ) -> tuple[list[list[int]], list[float]]:
        """All live hypotheses of all sentences at once; nothing else has rows."""
        check_decoding(max_length, beam_width, length_penalty)
        check_source(source, self.encoder.vocab_size)
        n, v = len(source), self.target_vocab_size
        state, memory = self.start(source)
        sentence = torch.arange(n)  # of each row
        total = torch.zeros(n, dtype=torch.float64)
        written = torch.full((n, 1), BOS)
        best = torch.full((n,), -math.inf, dtype=torch.float64)
        answers = torch.full((n, max_length), EOS)
        for length in range(1, max_length + 1):
            rows = tuple(part[sentence] for part in memory)
            logits, state = self.step(written[:, -1], state, rows)
            totals = (total[:, None] + logits.log_softmax(1)).flatten()  # (rows * v,)
            owner = sentence.repeat_interleave(v)
            # By sentence, and within a sentence by log-probability: two sorts, the second stable.
            order = totals.argsort(descending=True)
            order = order[owner[order].argsort(stable=True)]
            counts = owner.bincount(minlength=n)
            rank = torch.arange(len(order)) - (counts.cumsum(0) - counts)[owner[order]]
            kept = order[rank < beam_width]

            written = torch.cat((written[kept // v], (kept % v)[:, None]), 1)
            state, total, sentence = state[kept // v], totals[kept], owner[kept]
            finished = written[:, -1] == EOS
            scores = total / length**length_penalty
            for row in torch.nonzero(finished | (length == max_length)).flatten().tolist():
                i = sentence[row]
                if scores[row] > best[i]:
                    best[i] = scores[row]
                    answers[i] = EOS
                    answers[i, :length] = written[row, 1:]
            live = ~finished
            written, state = written[live], state[live]
            total, sentence = total[live], sentence[live]
            if len(sentence) == 0:
                break
        lengths = (answers != EOS).sum(1).tolist()
        return [answers[i, :length].tolist() for i, length in enumerate(lengths)], best.tolist()


def train(model: Seq2Seq, source: Tensor, target: Tensor, config: TrainConfig) -> dict:
    """Mini-batches from a DataLoader."""
    check_source(source, model.encoder.vocab_size)
    check_target(target, model.target_vocab_size, n=len(source))
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
        for step, (sources, targets) in enumerate(pairs, start=1):
            loss = model.loss(without_padding(sources), without_padding(targets))
            if loss.isnan() or loss.isinf():
                raise ValueError(f"the loss is {loss.item()} at step {step}: the run diverged")
            optimizer.zero_grad(set_to_none=False)
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), config.max_norm)
            optimizer.step()
            history["learning_rate"].append(optimizer.param_groups[0]["lr"])
            optimizer.param_groups[0]["lr"] = config.learning_rate * (1 - step / steps)
            history["loss"].append(loss.item())
            history["norm"].append(norm.item())
            display.step(loss=loss.item())
    return history
