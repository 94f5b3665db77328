"""What the lab of assignment 4 asks of the number words, counted from the data itself."""

from common.data import load_numbers

BATCH = 64


def share_of_longer_french():
    """The part of the training pairs whose French side has more tokens."""
    pairs = load_numbers().train
    longer = [len(f) > len(e) for e, f in zip(pairs.source, pairs.target, strict=True)]
    return sum(longer) / len(longer)


def share_of_padding():
    """The part of the first batch that is padding, if its sources come as they are."""
    lengths = [len(tokens) for tokens in load_numbers().train.source[:BATCH]]
    return 1 - sum(lengths) / (BATCH * max(lengths))
