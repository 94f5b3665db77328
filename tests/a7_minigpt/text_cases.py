"""How the tests of exercises 7.1 and 7.2 check characters as ids, and batches of a text."""

import math

import numpy as np
import torch

from common.student_text import read_json
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
    indices = [*chosen[:3], *rng.choice(chosen, size=length)]
    return "".join(alphabet[index] for index in indices)


def codes_of(text):
    """The code points of a text's characters."""
    return np.array([*map(ord, text)], dtype=np.int64)


def text_of(codes):
    return "".join(map(chr, codes))


def characters_of(text):
    """Each character once, sorted by code point."""
    return text_of(np.unique(codes_of(text)))


def check_tokenizer(tokenizer, text):
    """The tokenizer has the text's characters, which are returned."""
    check_object(tokenizer, "what from_text returns", "a CharTokenizer")
    characters = characters_of(text)
    assert_equal(tokenizer.characters, characters, what="the characters")
    assert_equal(tokenizer.vocab_size, len(characters), what="vocab_size")
    return characters


def check_encoded(ids, characters, text, what):
    """The ids are int64 indices of the text's characters."""
    check_ids(ids, (len(text),), len(characters), what[0].upper() + what[1:])
    found, right = codes_of(characters)[ids.numpy()], codes_of(text)
    assert_close(found, right, what=f"the code points that {what} stand for", axes=("position",))


def check_unknown(encode, text, unknown):
    """The ValueError shows the unknown character."""
    message = check_refused("an unknown character", encode, text)
    check(
        repr(unknown) in message,
        "The ValueError for an unknown character must show it as repr does.",
        f"The character is {unknown!r}, and the message is: {message}",
    )


def check_decoded(decode, characters, ids):
    """A tensor and a list of ids give the text; a view does too, and other ids are rejected."""
    tensor = torch.tensor(ids, dtype=torch.int64)
    text = text_of(codes_of(characters)[tensor.numpy()])
    spread = spread_out(tensor) if ids else tensor
    for given, kind in ((tensor, "a tensor"), (list(ids), "a list"), (spread, "a view")):
        assert_equal(decode(given), text, what=f"the text of {kind}")
    check_unchanged("decode", decode, tensor)
    for wrong in (-1, len(characters), len(characters) + 3, -len(characters)):
        check_refused("an id that is out of range", decode, [0, wrong])
        check_refused("an id that is out of range", decode, torch.tensor([wrong, 0]))


def check_saved(written, characters):
    """The file is JSON in UTF-8 with the characters."""
    try:
        content = read_json(written)
    except ValueError as error:
        check(False, "save must write JSON in UTF-8.", str(error))
    check(
        content == {"characters": characters},
        'save must write {"characters": "..."} as JSON, and nothing else.',
        f"The file holds {content!r}.",
    )


def check_loaded(tokenizer, characters, text):
    """The loaded tokenizer has the characters, and decodes what it encodes."""
    check_object(tokenizer, "what load returns", "a CharTokenizer")
    assert_equal(tokenizer.characters, characters, what="the characters after load")
    assert_equal(tokenizer.decode(tokenizer.encode(text)), text, what="the text after load")


def check_load(student):
    """Other valid files are read; files without valid characters raise ValueError."""
    load, path = student.tokenizer.CharTokenizer.load, scratch_path(student, "other.json")
    for content in ('{"characters": "ab"}', ' {\n "characters"\n : "\\u0061b" }\n'):
        write_scratch(student, path, content.encode())
        check_loaded(load(path), "ab", "abba")
    for situation, content in (
        ("a file that is not JSON", "characters: ab"),
        ("an empty file", ""),
        ("a list", '["ab"]'),
        ("a string alone", '"ab"'),
        ("an object without characters", '{"words": "ab"}'),
        ("characters that are a number", '{"characters": 3}'),
        ("characters that are a list", '{"characters": ["a", "b"]}'),
        ("characters that aren't sorted", '{"characters": "ba"}'),
        ("a character that occurs twice", '{"characters": "aab"}'),
        ("no characters", '{"characters": ""}'),
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
    """A different id at each position, so that a window shows where it is from."""
    return torch.from_numpy(rng.permutation(3 * length)[:length])


def starts_of(data, batch, batch_size, context_length):
    """Where each row is from; x and y have the right shape and type, and belong together."""
    x, y = unpack(batch, 2, "get_batch")
    positions = {value: position for position, value in enumerate(data.tolist())}
    starts = [0] * batch_size
    if isinstance(x, torch.Tensor) and x.shape == (batch_size, context_length):
        # The first id decides. A row that starts like no window is compared with some window.
        last = len(data) - context_length - 1
        starts = [min(positions.get(first, 0), last) for first in x[:, 0].tolist()]
    windows = data.unfold(0, context_length + 1, 1)[starts]
    for name, rows, expected in (("x", x, windows[:, :-1]), ("y", y, windows[:, 1:])):
        assert_close(rows, expected, what=name, axes=("row", "position"))
    return starts


# Pairs of rows in a batch for check_uniform. With 6 windows, each of the 36 pairs of windows is
# expected 278 times. The probability of being off by 7 standard errors, 115, is below 1e-8.
PAIRS = 10_000


def check_uniform(data, batch, context_length):
    """Every window is equally likely, the last one too, whatever the row beside it is."""
    choices = len(data) - context_length
    starts = np.array(starts_of(data, batch, 2 * PAIRS, context_length))
    counts = np.bincount(starts, minlength=choices)
    check_even_counts(counts, "Some windows of the text are drawn too often or too rarely.")
    pairs = np.bincount(starts[::2] * choices + starts[1::2], minlength=choices**2)
    check_even_counts(pairs, "The rows of a batch depend on each other: draw each independently.")


def check_repeats(data, batches):
    """A window may occur twice in a batch. Among 10 batches of 8, none does with p = 6e-27."""
    drawn = [starts_of(data, batch, 8, 3) for batch in batches]
    check(
        any(len(set(starts)) < 8 for starts in drawn),
        "No window ever occurs twice in a batch: draw each row independently of the others.",
    )


def check_even_counts(counts, sentence):
    total, p = counts.sum(), 1 / len(counts)
    allowed = STANDARD_ERRORS * math.sqrt(total * p * (1 - p))
    worst = int(np.abs(counts - total * p).argmax())
    check(
        abs(counts[worst] - total * p) <= allowed,
        sentence,
        f"Number {worst} of {len(counts)} was drawn {counts[worst]} times in {total}.",
        "A text has length - context_length windows, and torch.randint excludes its upper end.",
    )


def compare_draws(first, again, other):
    """The same generator gives the same batches, whatever else draws random numbers."""
    sentence = "The same generator must give the same batches: all random numbers come from it."
    check(first == again, sentence)
    check(first != other, "Another generator must give other batches.")
    check(first[0] != first[1], "Two batches in a row must be two draws of the generator.")


def check_batch_refused(get_batch, generator):
    """Texts without a window and sizes below 1; the shortest valid text gives its only window."""
    data = torch.arange(9)
    check(starts_of(data, get_batch(data, 3, 8, generator), 3, 8) == [0] * 3, "A window is wrong.")
    for context_length in (9, 10, 50):
        check_refused("a text without a window", get_batch, data, 2, context_length, generator)
    check_refused("an empty text", get_batch, data[:0], 2, 1, generator)
    for sizes in ((0, 3), (-1, 3), (2, 0), (2, -1)):
        check_refused("a size below 1", get_batch, data, *sizes, generator)
