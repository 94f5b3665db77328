"""Tests of GPU detection: parsing nvidia-smi, and machines without a GPU."""

import pytest

from common.testing import cuda
from common.testing.cuda import Clocks, parse_clocks
from tests.tooling.scratch_copies import script

SAMPLES = {
    "1410 MHz, 1410 MHz, 0x0000000000000000, 45\n": (Clocks(1410, 1410, (), 45)),
    # Idle, or with a clock that someone has set: nothing slows it down.
    "210 MHz, 1980 MHz, 0x0000000000000001, 31\n": Clocks(210, 1980, (), 31),
    "1200 MHz, 1980 MHz, 0x0000000000000002, 50\n": Clocks(1200, 1980, (), 50),
    "1155 MHz, 1980 MHz, 0x0000000000000004, 71\n": Clocks(1155, 1980, ("power cap",), 71),
    "900 MHz, 1980 MHz, 0x0000000000000028, 92\n": Clocks(
        900, 1980, ("hardware slowdown", "thermal slowdown"), 92
    ),
    "[N/A], 1980 MHz, [Not Supported], 40\n": Clocks(None, 1980, None, 40),
    # Of several GPUs the first.
    "1410 MHz, 1410 MHz, 0x0, 45\n900 MHz, 1410 MHz, 0x8, 90\n": Clocks(1410, 1410, (), 45),
}


@pytest.mark.parametrize(("text", "clocks"), SAMPLES.items())
def test_what_nvidia_smi_says_is_understood(text, clocks):
    assert parse_clocks(text) == clocks


@pytest.mark.parametrize("text", ["", "No devices were found\n", "1410 MHz, 1410 MHz\n"])
def test_anything_else_is_nothing(text):
    assert parse_clocks(text) is None


def test_clocks_are_words_of_what_is_known():
    throttled = Clocks(1155, 1980, ("power cap", "thermal slowdown"), 71)
    assert str(throttled) == "1155 of 1980 MHz; throttled: power cap, thermal slowdown; 71 C"
    assert str(Clocks(1980, 1980, (), 40)) == "1980 of 1980 MHz; throttled: no; 40 C"
    assert str(Clocks(None, 1980, None, 40)) == "40 C"


def test_nvidia_smi_is_asked_where_there_is_one(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert cuda.clocks() is None
    said = "1155 MHz, 1980 MHz, 0x0000000000000004, 71"
    script(tmp_path / "nvidia-smi", f'test "$1" = "--query-gpu={cuda.QUERY}" && echo "{said}"')
    assert cuda.clocks() == Clocks(1155, 1980, ("power cap",), 71)
    script(tmp_path / "nvidia-smi", "echo broken; exit 9")
    assert cuda.clocks() is None


def test_without_pytorch_there_is_no_gpu(monkeypatch):
    def missing():
        raise ModuleNotFoundError

    monkeypatch.setattr(cuda, "load_torch", missing)
    assert cuda.available() is False


@pytest.mark.skipif(not cuda.available(), reason="no GPU")
def test_on_a_gpu_memory_is_the_gpus():
    import torch

    x = torch.ones(1000, 1000, device="cuda")
    assert cuda.peak_memory(lambda: x + 1) >= 4_000_000
    assert cuda.device_name()
