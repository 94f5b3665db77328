"""How the tests of exercise 7.8 check the cache, and that it saves work."""

import torch

from common.testing.checks import check_refused, check_unchanged
from common.testing.compare import assert_close, assert_equal, check, unpack
from common.testing.remote.operations import call_each
from common.testing.remote.timed_calls import timed_calls
from common.testing.remote.torch_modules import load_parameters, seed_torch
from common.testing.remote.torch_objects import torch_generator, vectors_through
from common.testing.speed_ratio import Try, check_speed
from tests.a7_minigpt.cases import (
    LOGIT_AXES,
    check_ids,
    check_object,
    check_same_weights,
    draw_model,
    draw_tokens,
    draw_vectors,
    expected_output,
)
from tests.a7_minigpt.sampling_cases import check_most_likely, windows_of

HEAD_AXES = ("sequence", "head", "position", "feature")
FASTER = 2
TRIES, PATIENCE = 5, 30
# The sizes of the CPU, but for the context.
TIMED = {"vocab_size": 70, "context_length": 256, "num_layers": 4, "num_heads": 4, "d_model": 128}
PROMPT, LENGTH = 8, 249  # together one more than the context: the last token isn't read
# Every eighth reading takes an eighth of the time of all, within 2 % once warm. Right code takes
# between 0.11 and 0.18 of that time, so the other seven aren't needed. For slower code, all are
# timed.
PART = 8
# How far below the largest a chosen logit may be, as a share of the largest: float32 rounds.
CLOSE = 1e-4


def new_cache(student, model):
    cache = student.sampling.KVCache(student.model.GPTConfig(**model.settings))
    return check_object(cache, "what KVCache gives", "a cache")


def draw_keys_and_values(rng, model, n, t, *, dtype):
    num_heads = model.settings["num_heads"]
    shape = n, num_heads, t, model.settings["d_model"] // num_heads
    return [draw_vectors(rng, *shape, dtype=dtype) for _ in "kv"]


def check_cache(cache, whole, pieces):
    """extend returns new keys and values after all earlier ones, for each layer separately."""
    assert_equal(cache.length, 0, what="the length of a new cache")
    calls, wanted, read = [], [], 0
    for t in pieces:
        for layer, pair in enumerate(whole):
            calls.append((layer, *(values[:, :, read : read + t] for values in pair)))
            wanted.append([values[:, :, : read + t] for values in pair])
        read += t
    # The results are read after the last call: what was returned before must stay as it was.
    for result, right in zip(call_each(cache.extend, calls), wanted, strict=True):
        for name, actual, expected in zip(
            ("keys", "values"), unpack(result, 2, "extend"), right, strict=True
        ):
            assert_close(actual, expected, f"the {name} of extend", HEAD_AXES)
    assert_equal(cache.length, sum(pieces), what="the length of the cache")


def check_pieces(student, oracle, rng, model, *, n, pieces):
    """Piece by piece, the logits are those of all tokens at once; each piece is read once."""
    module, forward = model.on(student.model, dropout=0.5), student.sampling.forward_cached
    cache, read = new_cache(student, model), 0
    tokens = draw_tokens(rng, model.settings["vocab_size"], n, sum(pieces))
    expected = expected_output(oracle, model, tokens)
    module.eval()
    for index, t in enumerate(pieces):
        piece = tokens[:, read : read + t]
        logits = forward(module, piece, cache)
        right = expected[:, read : read + t]
        assert_close(logits, right, f"the logits of piece {index} ({t} tokens)", LOGIT_AXES)
        read += t
        assert_equal(cache.length, read, what="the length of the cache")
    check_same_weights(module, model.parameters, "forward_cached")
    room = model.settings["context_length"] - read
    wide = draw_tokens(rng, model.settings["vocab_size"], n, room + 1)
    check_refused("more tokens than there is room for", forward, module, wide, cache)
    wrong = torch.full((n, 1), model.settings["vocab_size"])
    cache = new_cache(student, model)
    check_refused("an id that is out of range", forward, module, wrong, cache)
    check_unchanged("forward_cached", forward, module, tokens, new_cache(student, model))


def check_same_tokens(student, oracle, model, prompts, *, length, seed):
    """The tokens of generate, for the same generator, past the context too."""
    module, sampling = model.on(student.model, dropout=0.5), student.sampling
    vocab_size = model.settings["vocab_size"]
    for index, prompt in enumerate(prompts):
        mode = index % 2 == 0
        module.train(mode)
        found = sampling.generate_cached(module, prompt, length, 0.0)
        check_most_likely(oracle, model, found, prompt, length=length, what="generate_cached")
        for settings in ({"temperature": 2.0}, {"top_k": 4, "top_p": 0.9, "temperature": 1.3}):
            texts = []
            for function in (sampling.generate, sampling.generate_cached):
                seed_torch(student, index)
                generator = torch_generator(student, seed + index)
                texts.append(function(module, prompt, length, **settings, generator=generator))
            check_ids(texts[0], (len(prompt) + length,), vocab_size, "What generate returns")
            what = "the tokens of generate_cached, compared with those of generate,"
            assert_close(texts[1], texts[0], what=what, axes=("position",))
        check(module.training is mode, "generate_cached must leave the model in its mode.")
        check_unchanged("generate_cached", sampling.generate_cached, module, prompt, 2, 0.0)
    check_same_weights(module, model.parameters, "generate_cached")


def check_each_token_once(generate_cached, module, model, prompt, *, length):
    """Only new tokens go through the layers, except when a cut window is read again."""
    found, size = generate_cached(module, prompt, length, 0.0), len(prompt)
    vocab_size = model.settings["vocab_size"]
    check_ids(found, (size + length,), vocab_size, "What generate_cached returns")
    windows = windows_of(found.tolist(), size, model.settings["context_length"])
    allowed, before = len(windows[0]), windows[0]
    for window in windows[1:]:
        allowed += 1 if len(window) > len(before) else len(window)
        before = window
    allowed += 1  # the last token may be read too, though nothing follows it
    for part in ("blocks.0.mlp", f"blocks.{model.settings['num_layers'] - 1}.attention.qkv"):
        count = vectors_through(module, part, generate_cached, module, prompt, length, 0.0)
        check(
            count <= allowed,
            "generate_cached runs tokens through the layers again that the cache already holds.",
            f"{count} vectors went through {part}; {allowed} are enough.",
        )


def check_new_tokens_alone(student, oracle, rng, model, *, pieces):
    """forward_cached runs only the new tokens through the layers.

    Once a piece has been read, its rows of the position embedding change. Its keys and values are
    in the cache, so the logits of later pieces stay what they would have been.
    """
    forward, name = student.sampling.forward_cached, "position_embedding.weight"
    tokens = draw_tokens(rng, model.settings["vocab_size"], 2, sum(pieces))
    module, cache = model.on(student.model), new_cache(student, model)
    for piece in tokens.split(pieces, dim=1):
        count = vectors_through(module, "blocks.0.mlp", forward, module, piece, cache)
        check(
            count <= piece.numel(),
            "forward_cached runs more than the new tokens through the layers.",
            f"{count} vectors went through an MLP, for {piece.numel()} new tokens.",
        )
    module, cache, read = model.on(student.model), new_cache(student, model), 0
    expected, rows = expected_output(oracle, model, tokens), model.parameters[name]
    for piece, right in zip(tokens.split(pieces, 1), expected.split(pieces, 1), strict=True):
        logits = forward(module, piece, cache)
        assert_close(logits, right, "the logits after earlier positions have changed", LOGIT_AXES)
        read += piece.shape[1]
        others = torch.cat([draw_vectors(rng, read, rows.shape[1]), rows[read:]])
        load_parameters(module, model.parameters | {name: others})


def check_cache_speed(student, oracle, rng):
    """With the cache, generation takes at most half the time, and the tokens are right.

    Each prompt is one of 70 to the 8th: no texts can be prepared for all of them.
    """
    model = draw_model(rng, torch.float32, **TIMED)
    module, generate = model.on(student.model), student.sampling.generate_cached
    text = draw_tokens(rng, TIMED["vocab_size"], LENGTH)
    part = oracle.uncached_reading(TIMED, model.parameters, text, PART)

    def prepare():
        prompt, text = (draw_tokens(rng, TIMED["vocab_size"], size) for size in (PROMPT, LENGTH))

        def verify(results, _):
            check_timed_text(oracle, model, prompt, results[0])

        return Try(
            lambda: timed_calls(generate, [(module, prompt, LENGTH, 0.0)]),
            oracle.uncached_reading(TIMED, model.parameters, text),
            verify,
        )

    check_speed(
        prepare,
        bar=1 / FASTER,
        tries=TRIES,
        patience=PATIENCE,
        sentence="generate_cached takes more than half the time of an uncached generation.",
        help="Each token must go through the model once: its keys and values are in the cache.",
        part=(part, PART),
    )


def check_timed_text(oracle, model, prompt, found):
    """Each token is the most likely one after those before it. They all fit into the context."""
    shape, what = (PROMPT + LENGTH,), "What generate_cached returns"
    check_ids(found, shape, TIMED["vocab_size"], what)
    check(found[:PROMPT].equal(prompt), f"{what} must start with the prompt.")
    logits = expected_output(oracle, model, found[None, :-1])[0, PROMPT - 1 :]
    chosen = logits.gather(1, found[PROMPT:, None])[:, 0]
    behind = float((logits.max(dim=1).values - chosen).max()) / float(logits.abs().max())
    check(
        behind < CLOSE, "While timed, generate_cached gave a token that is not the most likely one."
    )
