"""How the tests of exercises 7.1 and 7.2 check characters as ids, and batches of a text."""

import json
import math

import numpy as np
import torch

from common.testing.checks import STANDARD_ERRORS, check_refused, check_unchanged
from common.testing.compare import assert_close, assert_equal, check, unpack
from common.testing.feedback.failure import is_students, kind_in_words
from common.testing.remote.scratch_files import scratch_path, write_scratch
from tests.a7_minigpt.cases import check_ids, check_object, spread_out

# Upper and lower case, a line break, quotes, and characters of two, three and four bytes.
TEXTS = ("to be,\nor not", 'A "Zebra"\tba', "été, 日本 und \U0001f600!", "z", "\\n\n")

# Exercise 7.1


def draw_characters(rng, length):
    """A text of characters of all kinds, at least three different ones."""
    alphabet = [*map(chr, range(32, 127)), "\n", "\t", *"äéßøλжא日本", "\U0001f600", "\U0001d11e"]
    chosen = rng.permutation(len(alphabet))[:15]
    places = [*chosen[:3], *rng.choice(chosen, size=length)]
    return "".join(alphabet[place] for place in places)


def codes_of(text):
    """The code points of a text's characters."""
    return np.array([*map(ord, text)], dtype=np.int64)


def text_of(codes):
    return "".join(map(chr, codes))


def vocabulary_of(text):
    """Each character once, by code points."""
    return text_of(np.unique(codes_of(text)))


def check_tokenizer(tokenizer, text):
    """What from_text returns has the text's vocabulary, which comes back."""
    check_object(tokenizer, "what from_text returns", "a CharTokenizer")
    vocabulary = vocabulary_of(text)
    assert_equal(tokenizer.vocabulary, vocabulary, what="the vocabulary")
    assert_equal(tokenizer.size, len(vocabulary), what="the size")
    return vocabulary


def check_encoded(ids, vocabulary, text, what):
    """The ids are places in the vocabulary, as int64: the characters there are the text's."""
    check_ids(ids, (len(text),), len(vocabulary), what[0].upper() + what[1:])
    found, right = codes_of(vocabulary)[ids.numpy()], codes_of(text)
    assert_close(found, right, what=f"the code points that {what} stand for", axes=("place",))


def check_unknown(encode, text, unknown):
    """The ValueError shows the character that isn't known."""
    message = check_refused("a character that isn't known", encode, text)
    check(
        repr(unknown) in message,
        "The ValueError for an unknown character must show it as repr does.",
        f"The character is {unknown!r}, and the message is: {message}",
    )


def check_decoded(decode, vocabulary, ids):
    """A tensor and a list of ids give the text; a view does too, and other ids are refused."""
    tensor = torch.tensor(ids, dtype=torch.int64)
    text = text_of(codes_of(vocabulary)[tensor.numpy()])
    spread = spread_out(tensor) if ids else tensor
    for given, kind in ((tensor, "a tensor"), (list(ids), "a list"), (spread, "a view")):
        assert_equal(decode(given), text, what=f"the text of {kind}")
    check_unchanged("decode", decode, tensor)
    for wrong in (-1, len(vocabulary), len(vocabulary) + 3, -len(vocabulary)):
        check_refused("an id that isn't there", decode, [0, wrong])
        check_refused("an id that isn't there", decode, torch.tensor([wrong, 0]))


def check_saved(written, vocabulary):
    """The file is JSON in UTF-8 with the vocabulary."""
    try:
        content = json.loads(written.decode("utf-8"))
    except ValueError as error:
        check(False, "What save writes is not JSON in UTF-8.", str(error))
    check(
        content == {"vocabulary": vocabulary},
        'save must write {"vocabulary": "..."} as JSON, and nothing else.',
        f"The file holds {content!r}.",
    )


def check_loaded(tokenizer, vocabulary, text):
    """What load returns has the vocabulary, and gives a text back."""
    check_object(tokenizer, "what load returns", "a CharTokenizer")
    assert_equal(tokenizer.vocabulary, vocabulary, what="the vocabulary of load")
    assert_equal(tokenizer.decode(tokenizer.encode(text)), text, what="the text after load")


def check_load(student):
    """Other right files are read; files that are no vocabulary raise ValueError."""
    load, path = student.tokenizer.CharTokenizer.load, scratch_path(student, "other.json")
    for content in ('{"vocabulary": "ab"}', ' {\n "vocabulary"\n : "\\u0061b" }\n'):
        write_scratch(student, path, content.encode())
        check_loaded(load(path), "ab", "abba")
    for situation, content in (
        ("a file that is not JSON", "vocabulary: ab"),
        ("an empty file", ""),
        ("a list", '["ab"]'),
        ("a text alone", '"ab"'),
        ("an object without vocabulary", '{"words": "ab"}'),
        ("a vocabulary that is a number", '{"vocabulary": 3}'),
        ("a vocabulary that is a list", '{"vocabulary": ["a", "b"]}'),
        ("a vocabulary that isn't sorted", '{"vocabulary": "ba"}'),
        ("a vocabulary with a character twice", '{"vocabulary": "aab"}'),
        ("an empty vocabulary", '{"vocabulary": ""}'),
    ):
        write_scratch(student, path, content.encode())
        check_refused(situation, load, path)
    missing = scratch_path(student, "missing.json")
    try:
        load(missing)
    except FileNotFoundError:
        return
    except Exception as error:
        if not is_students(error):
            raise
        check(False, f"A missing file must raise FileNotFoundError, not {kind_in_words(error)}.")
    check(False, "A missing file must raise FileNotFoundError, but nothing was raised.")


# Exercise 7.2


def draw_text(rng, length):
    """Different ids at all places, so that a window tells where it is from."""
    return torch.from_numpy(rng.permutation(3 * length)[:length])


def starts_of(data, batch, batch_size, block_size):
    """Where each row is from; x and y have the right shape and type, and belong together."""
    x, y = unpack(batch, 2, "get_batch")
    places, starts = {value: place for place, value in enumerate(data.tolist())}, [0] * batch_size
    if isinstance(x, torch.Tensor) and x.shape == (batch_size, block_size):
        # The first entry tells. A row that begins with none of a window's is compared with one.
        last = len(data) - block_size - 1
        starts = [min(places.get(first, 0), last) for first in x[:, 0].tolist()]
    windows = data.unfold(0, block_size + 1, 1)[starts]
    for name, rows, expected in (("x", x, windows[:, :-1]), ("y", y, windows[:, 1:])):
        assert_close(rows, expected, what=name, axes=("row", "place"))
    return starts


# Pairs of rows in a batch for check_uniform. With 6 windows, each of the 36 pairs of windows is to
# be expected 278 times. It is off by 7 standard errors, 115, with a chance below 1e-8.
PAIRS = 10_000


def check_uniform(data, batch, block_size):
    """Every window is equally likely, the last one too, whatever the row beside it is."""
    windows = len(data) - block_size
    starts = np.array(starts_of(data, batch, 2 * PAIRS, block_size))
    counts = np.bincount(starts, minlength=windows)
    check_even_counts(counts, "Some windows of the text are drawn too often or too seldom.")
    pairs = np.bincount(starts[::2] * windows + starts[1::2], minlength=windows**2)
    check_even_counts(pairs, "Rows of a batch depend on each other: each is to be drawn by itself.")


def check_repeats(data, batches):
    """Windows may come again in a batch. That 10 batches of 8 have none has a chance of 6e-27."""
    drawn = [starts_of(data, batch, 8, 3) for batch in batches]
    check(
        any(len(set(starts)) < 8 for starts in drawn),
        "No window comes twice in a batch: each row is to be drawn whatever the others are.",
    )


def check_even_counts(counts, sentence):
    total, chance = counts.sum(), 1 / len(counts)
    allowed = STANDARD_ERRORS * math.sqrt(total * chance * (1 - chance))
    worst = int(np.abs(counts - total * chance).argmax())
    check(
        abs(counts[worst] - total * chance) <= allowed,
        sentence,
        f"Number {worst} of {len(counts)} came {counts[worst]} times in {total}.",
        "A text has length - block_size windows, and torch.randint leaves out its upper end.",
    )


def compare_draws(first, again, other):
    """The same generator gives the same batches, whatever else draws random numbers."""
    sentence = "The same generator must give the same batches: all random numbers come from it."
    check(first == again, sentence)
    check(first != other, "Another generator must give other batches.")
    check(first[0] != first[1], "Two batches in a row must be two draws of the generator.")


def check_batch_refused(get_batch, generator):
    """Texts without a window and sizes below 1; the smallest that there is gives its one window."""
    data = torch.arange(9)
    check(starts_of(data, get_batch(data, 3, 8, generator), 3, 8) == [0] * 3, "A window is wrong.")
    for block_size in (9, 10, 50):
        check_refused("a text without a window", get_batch, data, 2, block_size, generator)
    check_refused("an empty text", get_batch, data[:0], 2, 1, generator)
    for sizes in ((0, 3), (-1, 3), (2, 0), (2, -1)):
        check_refused("a size below 1", get_batch, data, *sizes, generator)
