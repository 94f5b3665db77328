"""How the tests of exercise 7.7 check what a model writes."""

import math
from dataclasses import dataclass

import torch

from common.testing.checks import check_refused, check_unchanged
from common.testing.compare import assert_close, assert_equal, check
from common.testing.remote.torch_modules import seed_torch
from common.testing.remote.torch_objects import torch_generator
from tests.a7_minigpt.cases import (
    check_ids,
    check_same_weights,
    draw_tokens,
    expected_output,
    spread_out,
)

CLOSE = 1e-9  # between two logits that are closer than this, rounding may decide
# The probability that right draws deviate by more than a Kullback-Leibler distance d is below
# 2 * exp(-n * d) after n draws. A test has fewer than 1e5 comparisons of this kind, over all n:
# together they fail with a probability below 1e-8.
SURPRISE = 30


# next_probabilities


@dataclass(frozen=True)
class RankedTokens:
    """Probabilities in descending order, and the token of each."""

    values: torch.Tensor
    tokens: torch.Tensor

    def logits(self, temperature=1.0, dtype=torch.float64):
        """Logits that have these probabilities at a temperature. A shift changes nothing."""
        logits = torch.empty_like(self.values)
        logits[self.tokens] = temperature * self.values.log() + 0.7
        return logits.to(dtype)

    def of_the_first(self, count, dtype=torch.float64):
        """The result if only so many of the most likely tokens remain."""
        kept, right = self.values[:count], torch.zeros_like(self.values)
        right[self.tokens[:count]] = kept / kept.sum()
        return right.to(dtype)

    def top_ps(self, count, top_k=None):
        """The least and the largest top_p that keep so many of the top_k most likely tokens."""
        whole = float(self.values[:top_k].sum())
        least, most = (float(self.values[:n].sum()) / whole for n in (count - 1, count))
        # float32 could mix up sums that are closer than this.
        return least + 1e-5, most - 1e-5


def draw_ranked_tokens(rng, vocab_size):
    """Probabilities of tokens in a random order, none of them near another."""
    steps = torch.from_numpy(rng.uniform(0.2, 0.6, size=vocab_size))
    tokens = torch.from_numpy(rng.permutation(vocab_size))
    return RankedTokens(torch.softmax(-steps.cumsum(0), dim=0), tokens)


def check_probabilities(next_probabilities, case):
    """The right ones, also for a view. case: its name, logits, what is right, and the settings."""
    situation, logits, expected, settings = case
    for given, more in ((logits, ""), (spread_out(logits), ", a view")):
        found = next_probabilities(given, **settings)
        what = f"the probabilities ({situation}{more})"
        assert_close(found, expected, what=what, axes=("token",))
    check_unchanged("next_probabilities", next_probabilities, logits)


def probability_cases(ranked, temperatures, counts, *, temperature, top_k):
    """Temperatures, counts as top_k, and each top_p, alone and with this temperature and top_k."""
    for heat in temperatures:
        situation = "a temperature above 0" if heat else "temperature 0"
        expected = ranked.of_the_first(len(ranked.values) if heat else 1)
        yield situation, ranked.logits(heat or 2.0), expected, {"temperature": heat}
    # A case that is easy to compute: e to the power of a difference of 2 / 0.5.
    small = 1 / (1 + math.exp(4))
    expected = torch.tensor([small, 1 - small], dtype=torch.float64)
    logits = torch.tensor([-1.0, 1.0], dtype=torch.float64)
    yield "two tokens", logits, expected, {"temperature": 0.5}
    for k in counts:
        yield f"top_k {k}", ranked.logits(), ranked.of_the_first(k), {"top_k": k}
    both = {"temperature": temperature, "top_k": top_k}
    for words, heat, k, some in (("", 1.0, None, {}), ("all three, ", temperature, top_k, both)):
        for count in range(1, (k or len(ranked.values)) + 1):
            for p in ranked.top_ps(count, k):
                expected, settings = ranked.of_the_first(count), some | {"top_p": p}
                yield f"{words}top_p {p:.5f}", ranked.logits(heat), expected, settings
        yield "top_p 1", ranked.logits(heat), ranked.of_the_first(k), some | {"top_p": 1.0}


def single_case(ranked, temperature, top_k):
    """float32, with all three settings: three tokens remain."""
    settings = {"temperature": temperature, "top_k": top_k, "top_p": ranked.top_ps(3, top_k)[1]}
    logits = ranked.logits(temperature, torch.float32)
    return "float32", logits, ranked.of_the_first(3, torch.float32), settings


def check_probabilities_refused(next_probabilities, logits):
    """Settings that make no sense; edge cases that do come first."""
    check(next_probabilities(logits, 0.0, 1, 1.0) is not None, "next_probabilities returned None.")
    for situation, settings in (
        ("a temperature below 0", {"temperature": -0.5}),
        ("a top_k below 1", {"top_k": 0}),
        ("a top_k below 1", {"top_k": -2}),
        ("a top_p of 0", {"top_p": 0.0}),
        ("a top_p below 0", {"top_p": -0.1}),
        ("a top_p above 1", {"top_p": 1.0001}),
        ("a top_p above 1, at temperature 0", {"temperature": 0.0, "top_p": 2.0}),
        ("a top_k below 1, at temperature 0", {"temperature": 0.0, "top_k": 0}),
    ):
        check_refused(situation, next_probabilities, logits, **settings)


# next_window and generate


def window_size(read, context_length):
    """How many of the read tokens are in the window, which is cut to half when full."""
    half = context_length // 2
    return (
        read
        if read <= context_length
        else half + 1 + (read - context_length - 1) % (context_length - half)
    )


def compare_window(found, expected, size, context_length):
    """A list of the right tokens, after a window of that size."""
    check(isinstance(found, list), "next_window must return a list.")
    assert_equal(list(found), expected, what=f"the window after {size} of {context_length}")


def check_windows(next_window, context_length, tokens):
    """Token by token; the argument doesn't change."""
    window = []
    for read, token in enumerate(tokens, start=1):
        expected = tokens[read - window_size(read, context_length) : read]
        compare_window(
            next_window(window, token, context_length), expected, len(window), context_length
        )
        window = expected
    mine = next_window([1, 2, 3], 4, 8)
    next_window(mine, 5, 8)
    assert_equal(list(mine), [1, 2, 3, 4], what="the window that was passed in")


def windows_of(tokens, prompt_length, context_length):
    """The window before each token that was added to the prompt."""
    ends = range(prompt_length, len(tokens))
    return [tokens[end - window_size(end, context_length) : end] for end in ends]


def check_most_likely(oracle, model, found, prompt, *, length, what):
    """The prompt, and then the most likely token after each window."""
    expected = torch.cat([prompt, torch.zeros(length, dtype=torch.int64)])
    check(
        isinstance(found, torch.Tensor) and found.dtype == torch.int64,
        f"{what} must return an int64 tensor.",
    )
    check(
        found.shape == expected.shape,
        f"{what} must return the prompt and length more tokens.",
        f"got shape {tuple(found.shape)}, expected {tuple(expected.shape)}",
    )
    vocab_size, tokens = model.settings["vocab_size"], found.tolist()
    check(
        tokens[: len(prompt)] == prompt.tolist(), f"What {what} returns must start with the prompt."
    )
    check(all(0 <= t < vocab_size for t in tokens), f"{what} gives an id that is out of range.")
    windows = windows_of(tokens, len(prompt), model.settings["context_length"])
    logits = logits_after(oracle, model, windows)
    for index, (window, after) in enumerate(zip(windows, logits, strict=True)):
        chosen = tokens[len(prompt) + index]
        check(
            float(after[chosen]) > float(after.max()) - CLOSE,
            f"{what} continues with a token that is not the most likely one after its window.",
            f"It is new token {index}, after the window {window}.",
            "The docstring of next_window defines the window once the context is full.",
        )


def logits_after(oracle, model, windows):
    """The logits of the token after each window. Windows of one length are read together."""
    found = [None] * len(windows)
    for length in {len(window) for window in windows}:
        rows = [row for row, window in enumerate(windows) if len(window) == length]
        tokens = torch.tensor([windows[row] for row in rows])
        last = expected_output(oracle, model, tokens)[:, -1]
        for row, logits in zip(rows, last, strict=True):
            found[row] = logits
    return found


def check_greedy(generate, module, model, prompts, *, length, oracle):
    """At temperature 0, with the windows of next_window; the model stays in its mode."""
    for index, prompt in enumerate(prompts):
        training = index % 2 == 0
        module.train(training)
        found = generate(module, prompt, length, 0.0)
        check_most_likely(oracle, model, found, prompt, length=length, what="generate")
        check(module.training is training, "generate must leave the model in its mode.")
        again = generate(module, spread_out(prompt), length, temperature=0, generator=None)
        assert_close(again, found, what="the same prompt again, as a view", axes=("position",))
        narrow = generate(module, prompt, length, top_k=1)
        assert_close(narrow, found, what="the tokens with top_k = 1", axes=("position",))
        check_unchanged("generate", generate, module, prompt, 2, 0.0)
    check_same_weights(module, model.parameters, "generate")


def check_nothing_to_write(generate, module, model, rng):
    """A length of 0 returns the prompt."""
    for size in (1, 3, 2 * model.settings["context_length"] + 1):
        prompt = draw_tokens(rng, model.settings["vocab_size"], size)
        assert_close(generate(module, prompt, 0), prompt, what="the prompt (length 0)")


def check_generate_refused(generate, module, vocab_size):
    """Prompts, lengths and settings that make no sense; the mode doesn't change."""
    prompt = torch.tensor([1, 2, 0])
    module.train()
    check(generate(module, prompt, 1) is not None, "Nothing was returned.")
    for situation, given, length, settings in (
        ("an empty prompt", prompt[:0], 3, {}),
        ("a negative length", prompt, -1, {}),
        ("an id that is out of range", torch.tensor([1, vocab_size]), 2, {}),
        ("an id below 0", torch.tensor([-1, 1]), 2, {}),
        ("a prompt with two axes", prompt[None], 2, {}),
        ("a prompt of floats", prompt.double(), 2, {}),
        ("a prompt in a list", prompt.tolist(), 2, {}),
        ("a temperature below 0", prompt, 2, {"temperature": -1.0}),
        ("a top_k below 1", prompt, 2, {"top_k": 0}),
        ("a top_p of 0", prompt, 2, {"top_p": 0.0}),
        ("a top_p above 1", prompt, 2, {"top_p": 1.5}),
    ):
        check_refused(situation, generate, module, given, length, **settings)
    check(module.training is True, "After a ValueError, the model must be in its previous mode.")


def distance(share, probability):
    """The Kullback-Leibler distance of a share from its probability."""
    pairs = ((share, probability), (1 - share, 1 - probability))
    return sum(p * math.log(p / q) if q else math.inf for p, q in pairs if p)


# With a context of 1, the next token depends only on the last one: so each token has its own
# probabilities for the next, and a long text shows them.
CHAIN = {"vocab_size": 3, "context_length": 1, "num_layers": 1, "d_model": 4}


def check_draws(tokens, model, next_probabilities, oracle):
    """Each token is drawn as often as its probability says."""
    vocab_size = CHAIN["vocab_size"]
    pairs = torch.stack([tokens[:-1], tokens[1:]], dim=1).tolist()
    for last in range(vocab_size):
        following = [after for before, after in pairs if before == last]
        logits = expected_output(oracle, model, torch.tensor([[last]]))[0, -1]
        p = next_probabilities(logits)
        check(
            isinstance(p, torch.Tensor)
            and p.shape == (vocab_size,)
            and p.is_floating_point()
            and bool((p >= 0).all())
            and abs(float(p.sum()) - 1) < 1e-6,
            "next_probabilities must return a probability for each token, with a sum of 1.",
        )
        for token, probability in enumerate(p.tolist()):
            share = following.count(token) / max(1, len(following))
            far = len(following) * distance(share, min(probability, 1.0)) if following else 0.0
            check(
                far < SURPRISE,
                "generate draws tokens more or less often than next_probabilities says.",
                f"{token} came after {last} in a share of {share:.3f} of {len(following)} draws; "
                f"its probability is {probability:.3f}.",
            )


def check_generator_alone(student, generate, model, seed):
    """The same generator gives the same tokens; without one, PyTorch's own is used."""
    module, prompt, found = model.on(student.model), torch.tensor([1, 0]), []
    for own_seed, given in ((1, seed), (2, seed), (2, seed + 1), (3, None), (3, None), (4, None)):
        seed_torch(student, own_seed)
        generator = None if given is None else torch_generator(student, given)
        tokens = generate(module, prompt, 25, temperature=3.0, generator=generator)
        check_ids(tokens, (2 + 25,), model.settings["vocab_size"], "The result")
        found.append(tokens.tolist())
    first, again, other, own, own_again, own_other = found
    check(first == again, "The same generator must give the same tokens: all draws come from it.")
    check(first != other, "Another generator must give other tokens.")
    check(
        own == own_again, "Without a generator, the same seed of PyTorch must give the same tokens."
    )
    check(own != own_other, "Without a generator, another seed of PyTorch must give other tokens.")
