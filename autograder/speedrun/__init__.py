"""The speedrun: trains a small GPT on tiny Shakespeare much faster than nanoGPT's recipe."""
