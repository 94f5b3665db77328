"""Whole batches: the beams of all sources go through the model together."""


def greedy_decode(model: Transformer, source: Tensor, max_length: int = 32) -> list[list[int]]:
    """All columns exist from the start, and are filled from the left."""
    check_padding(source)
    check_length(model, max_length)
    ids = torch.full((len(source), max_length + 1), PAD)
    ids[:, 0] = BOS
    live = torch.ones(len(source), dtype=torch.bool)
    with evaluating(model):
        source_mask, _ = make_masks(source, ids[:, :1])
        memory = model.encode(source, source_mask)
        for position in range(1, max_length + 1):
            log_p = next_log_probabilities(model, ids[:, :position], memory, source)
            ids[live, position] = log_p[live].argmax(dim=1)
            live = live & (ids[:, position] != EOS)
            if not live.any():
                break
    return [strip_special_tokens(row) for row in ids.tolist()]


def beam_search(
    model: Transformer, source: Tensor, max_length: int, beam_width: int, length_penalty: float
) -> list[int]:
    """One source is a batch of one."""
    return search_together(model, source, max_length, beam_width, length_penalty)[0]


def search_together(
    model: Transformer, source: Tensor, max_length: int, beam_width: int, length_penalty: float
) -> list[list[int]]:
    """The beams of all sources go through the model as one batch, and stay separate."""
    memory = model.encode(source, make_masks(source, source)[0])
    beams: list[list[tuple[float, list[int]]]] = [[(0.0, [BOS])] for _ in source]
    finished: list[list[tuple[float, list[int]]]] = [[] for _ in source]
    for length in range(1, max_length + 1):
        owners = [row for row, beam in enumerate(beams) for _ in beam]
        if not owners:
            break
        prefix = torch.tensor([ids for beam in beams for _, ids in beam])
        log_p = next_log_probabilities(model, prefix, memory[owners], source[owners])
        first = 0
        for row, beam in enumerate(beams):
            if not beam:
                continue
            scores = torch.tensor([score for score, _ in beam], dtype=torch.float64)
            totals = scores[:, None] + log_p[first : first + len(beam)]
            first += len(beam)
            top, choices = totals[:, EOS:].flatten().sort(descending=True)
            v = totals.shape[1] - EOS
            longer = [
                (score, [*beam[choice // v][1], EOS + choice % v])
                for score, choice in zip(
                    top[:beam_width].tolist(), choices[:beam_width].tolist(), strict=True
                )
            ]
            beams[row] = [pair for pair in longer if pair[1][-1] != EOS and length < max_length]
            finished[row] += [
                (score / length**length_penalty, ids)
                for score, ids in longer
                if ids[-1] == EOS or length == max_length
            ]
    return [strip_special_tokens(max(pairs)[1]) for pairs in finished]


def beam_decode(
    model: Transformer,
    source: Tensor,
    max_length: int = 32,
    beam_width: int = 4,
    length_penalty: float = 0.6,
) -> list[list[int]]:
    """What the search finds for each source."""
    check_padding(source)
    check_length(model, max_length)
    if beam_width < 1 or not 0 <= length_penalty < math.inf:
        raise ValueError(f"invalid settings: {beam_width}, {length_penalty}")
    with evaluating(model):
        return search_together(model, trim(source), max_length, beam_width, length_penalty)
