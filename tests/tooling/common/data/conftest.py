"""Fixtures of the data tests: cache folders that nobody else uses."""

import pytest


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
