"""Trains what a student submits for exercise 7.10, with the reference: about five minutes."""

from pathlib import Path

import torch

from assignments.a7_minigpt.model import GPT, GPTConfig
from assignments.a7_minigpt.tokenizer import CharTokenizer
from assignments.a7_minigpt.training import TrainConfig, export_model, train
from common.data import load_shakespeare

STEPS = 1600


def make(folder: Path) -> None:
    """Write checkpoint.safetensors and config.json of a model that has read the plays."""
    text = load_shakespeare("plays").train
    characters = CharTokenizer.from_text(text)
    torch.manual_seed(0)
    gpt = GPT(GPTConfig(characters.size))
    config = TrainConfig(STEPS, batch_size=32, peak=4e-3, floor=2e-4, warmup=100)
    train(gpt, characters.encode(text), config)
    export_model(gpt, characters, folder)
