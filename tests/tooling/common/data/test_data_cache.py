"""Tests of the data cache: prepared once, checked by hash, never required."""

import multiprocessing
import os
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
import pytest

from common.assignment import LabSettings
from common.data import LOADERS, cache, load_mnist, load_shakespeare, mnist, preload
from common.data.cache import cache_folder, cached, digest
from common.errors import CourseError


def test_the_cache_folder_is_where_the_environment_says(monkeypatch, tmp_path):
    assert cache_folder() == Path(os.environ["CONV2GPT_CACHE"])
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


def test_a_damaged_cache_is_made_again(cold):
    expected = load_mnist().train_images.tobytes()
    [file] = cold.iterdir()
    good = file.read_bytes()
    for bad in (good[:-1], b"", bytes([good[0] ^ 1]) + good[1:]):
        file.write_bytes(bad)
        assert load_mnist().train_images.tobytes() == expected
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
    preload(["mnist"])
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
    with pytest.raises(CourseError, match="please report it to the course staff"):
        cached("thing", digest(b"expected"), lambda: b"different")
    assert not cold.exists()


def test_two_processes_may_start_at_once(cold):
    spawning = multiprocessing.get_context("spawn")
    with spawning.Pool(2) as pool:
        texts = pool.map_async(load_shakespeare, ["plays", "plays"], chunksize=1)
        digits = [pool.apply_async(load_mnist) for _ in range(2)]
        assert texts.get(120) == [load_shakespeare()] * 2
        first, second = (one.get(120) for one in digits)
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)
    names = sorted(file.name.partition("-")[0] for file in cold.iterdir())
    assert names == ["mnist", "shakespeare"]  # and no temporary file
