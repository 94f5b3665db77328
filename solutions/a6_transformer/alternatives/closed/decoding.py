"""Whole batches: the beams of all sources go through the model together."""


def greedy_decode(model: Transformer, source: Tensor, max_length: int = 32) -> list[list[int]]:
    """All columns are there from the start, and are filled from the left."""
    check_padding(source)
    check_length(model, max_length)
    ids = torch.full((len(source), max_length + 1), PADDING)
    ids[:, 0] = BEGIN
    going = torch.ones(len(source), dtype=torch.bool)
    with evaluating(model):
        source_mask, _ = make_masks(source, ids[:, :1])
        memory = model.encode(source, source_mask)
        for place in range(1, max_length + 1):
            log_p = next_log_probabilities(model, ids[:, :place], memory, source)
            ids[going, place] = log_p[going].argmax(dim=1)
            going = going & (ids[:, place] != END)
            if not going.any():
                break
    return [words_of(row) for row in ids.tolist()]


def beam_search(
    model: Transformer, source: Tensor, max_length: int, width: int, alpha: float
) -> list[int]:
    """One source is a batch of one."""
    return search_together(model, source, max_length, width, alpha)[0]


def search_together(
    model: Transformer, source: Tensor, max_length: int, width: int, alpha: float
) -> list[list[int]]:
    """The beams of all sources go through the model as one batch; each keeps to its own."""
    memory = model.encode(source, make_masks(source, source)[0])
    beams: list[list[tuple[float, list[int]]]] = [[(0.0, [BEGIN])] for _ in source]
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
            top, places = totals[:, END:].flatten().sort(descending=True)
            choices = totals.shape[1] - END
            longer = [
                (score, [*beam[place // choices][1], END + place % choices])
                for score, place in zip(top[:width].tolist(), places[:width].tolist(), strict=True)
            ]
            beams[row] = [pair for pair in longer if pair[1][-1] != END and length < max_length]
            finished[row] += [
                (score / length**alpha, ids)
                for score, ids in longer
                if ids[-1] == END or length == max_length
            ]
    return [words_of(max(pairs)[1]) for pairs in finished]


def beam_decode(
    model: Transformer,
    source: Tensor,
    max_length: int = 32,
    width: int = 4,
    alpha: float = 0.6,
) -> list[list[int]]:
    """What the search finds for each source."""
    check_padding(source)
    check_length(model, max_length)
    if width < 1 or not 0 <= alpha < math.inf:
        raise ValueError(f"no search with width {width} and alpha {alpha}")
    with evaluating(model):
        return search_together(model, trim(source), max_length, width, alpha)
