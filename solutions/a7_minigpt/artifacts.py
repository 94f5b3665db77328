"""Trains what a student submits for exercise 7.10, with the reference: about five minutes."""

from pathlib import Path

import torch

from assignments.a7_minigpt.model import GPT, GPTConfig
from assignments.a7_minigpt.tokenizer import CharTokenizer
from assignments.a7_minigpt.training import TrainConfig, export_model, train
from common.data import load_shakespeare

STEPS = 1600


def make(folder: Path) -> None:
    """Write checkpoint.safetensors and config.json of a model trained on the plays."""
    text = load_shakespeare("plays").train
    tokenizer = CharTokenizer.from_text(text)
    torch.manual_seed(0)
    gpt = GPT(GPTConfig(tokenizer.vocab_size))
    config = TrainConfig(STEPS, batch_size=32, max_lr=4e-3, min_lr=2e-4, warmup=100)
    train(gpt, tokenizer.encode(text), config)
    export_model(gpt, tokenizer, folder)
