"""Plain lists: beams are Python lists of tuples."""

from assignments.a6_transformer.layers import LayerNorm


def greedy_decode(model: Transformer, source: Tensor, max_length: int = 32) -> list[list[int]]:
    """The batch shrinks as sequences end."""
    check_padding(source)
    check_length(model, max_length)
    answers: list[list[int]] = [[] for _ in source]
    with evaluating(model):
        rows = torch.arange(len(source))
        memory = model.encode(source, source.ne(PAD)[:, None])
        prefix = torch.full((len(source), 1), BOS)
        for _ in range(max_length):
            token = next_log_probabilities(model, prefix, memory[rows], source[rows]).argmax(1)
            live = token != EOS
            rows = rows[live]
            prefix = torch.cat([prefix, token[:, None]], dim=1)[live]
            for row, new in zip(rows.tolist(), token[live].tolist(), strict=True):
                answers[row].append(new)
            if len(rows) == 0:
                break
    return answers


def beam_search(
    model: Transformer, source: Tensor, max_length: int, beam_width: int, length_penalty: float
) -> list[int]:
    """Hypotheses are tuples (log-probability, ids)."""
    memory = model.encode(source)
    live: list[tuple[float, list[int]]] = [(0.0, [BOS])]
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
            for token in range(EOS, len(log_p[row]))
        ]
        longer.sort(key=lambda hypothesis: -hypothesis[0])
        finished += [hypothesis for hypothesis in longer[:beam_width] if hypothesis[1][-1] == EOS]
        live = [hypothesis for hypothesis in longer[:beam_width] if hypothesis[1][-1] != EOS]
    best = max(finished + live, key=lambda pair: pair[0] / (len(pair[1]) - 1) ** length_penalty)
    return strip_special_tokens(best[1])


def attention_maps(model: Transformer, source: Tensor, target: Tensor) -> dict[str, Tensor]:
    """Walk through the layers, and call each attention once more."""
    source_mask, target_mask = make_masks(source, target)
    maps: dict[str, list[Tensor]] = {"encoder": [], "decoder": [], "cross": []}

    def entering(norm: LayerNorm, x: Tensor) -> Tensor:
        return norm(x) if model.config.norm == "pre" else x

    with evaluating(model):
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
