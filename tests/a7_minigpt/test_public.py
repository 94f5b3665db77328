"""The public tests of assignment 7: a mini-GPT, from characters to a trained model."""

import math
import statistics
from functools import partial

import torch
from gradescope_utils.autograder_utils.decorators import number, tags, weight

from common.data import load_shakespeare
from common.labs.answer_checks import check_number, check_sizes
from common.testing.checks import check_refused, check_unchanged
from common.testing.compare import assert_close, assert_equal, check, unpack
from common.testing.dropout import check_levels, check_tensor
from common.testing.remote.operations import paced_function
from common.testing.remote.scratch_files import scratch_bytes, scratch_path, write_scratch
from common.testing.remote.torch_modules import parameters_of, seed_torch
from common.testing.remote.torch_objects import (
    devices_of,
    gradient_descent,
    product_function,
    torch_generator,
)
from tests.a7_minigpt import (
    block_cases,
    cache_cases,
    checkpoint_cases,
    model_cases,
    optimizer_cases,
    sampling_cases,
    text_cases,
    timing_cases,
    training_cases,
)
from tests.a7_minigpt.artifact_cases import CHECKPOINT, CONFIG, check_trained, read_model
from tests.a7_minigpt.cases import (
    LOGIT_AXES,
    SMALL,
    SMALL_BLOCK,
    check_calls_stay_apart,
    check_evaluation,
    check_gradients,
    check_ids,
    check_object,
    compare,
    count_parameters,
    draw_batch,
    draw_block,
    draw_model,
    draw_tokens,
    draw_vectors,
    draw_vjp,
    expected_output,
    named_weights,
    new_module,
    spread_out,
    view_of,
)
from tests.a7_minigpt.model_cases import NEW, WIDE
from tests.a7_minigpt.optimizer_cases import CLIPPED, NO_CLIP, draw_batches
from tests.a7_minigpt.sampling_cases import CHAIN, check_probabilities, draw_ranked_tokens
from tests.a7_minigpt.text_cases import PAIRS, TEXTS, draw_text, starts_of
from tests.a7_minigpt.training_cases import TINY

# Exercise 7.1


@weight(1)
@number("7.1")
def test_from_text_finds_each_character_once_in_order(student):
    """Sorted by code point: a line break, capitals, small letters, others; not an empty text."""
    from_text = student.tokenizer.CharTokenizer.from_text
    tokenizer = from_text("banana\nABC")
    text_cases.check_tokenizer(tokenizer, "banana\nABC")
    assert_equal(tokenizer.characters, "\nABCabn", what="the characters of 'banana\\nABC'")
    for text in TEXTS:
        text_cases.check_tokenizer(from_text(text), text)
    check_refused("an empty text", from_text, "")


@weight(1)
@number("7.1")
def test_encode_gives_the_index_of_each_character(student):
    """int64, empty for an empty text, and a ValueError that shows an unknown character."""
    new = student.tokenizer.CharTokenizer
    for text in TEXTS:
        characters = text_cases.check_tokenizer(new.from_text(text), text)
        text_cases.check_encoded(new(characters).encode(text), characters, text, "the ids")
        none = new(characters).encode("")
        text_cases.check_encoded(none, characters, "", "the ids of an empty text")
    long = 100_000 * "ab c\n"
    text_cases.check_encoded(new("\n abc").encode(long), "\n abc", long, "the ids of a long text")
    for text, unknown in (("abcd", "d"), ("a\nb", "\n"), ("ab'", "'"), ("aéb", "é")):
        text_cases.check_unknown(new("abc").encode, text, unknown)


@weight(1)
@number("7.1")
def test_decode_returns_the_text_and_rejects_ids_out_of_range(student, rng):
    """For tensors, views and lists; an id of -1 would silently be Python's last."""
    for characters in ("\n !abc", "a", "AZaé日"):
        for length in (0, 1, 40):
            ids = rng.integers(len(characters), size=length).tolist()
            decode = student.tokenizer.CharTokenizer(characters).decode
            text_cases.check_decoded(decode, characters, ids)
    for text in TEXTS:
        tokenizer = student.tokenizer.CharTokenizer.from_text(text)
        text_cases.check_tokenizer(tokenizer, text)
        assert_equal(tokenizer.decode(tokenizer.encode(text)), text, what="the text")


@weight(1)
@number("7.1")
def test_save_writes_json_that_load_reads(student):
    """{"characters": "..."} in UTF-8; for any other file, a ValueError."""
    path = scratch_path(student, "characters.json")
    for text in TEXTS:
        write_scratch(student, path, b"what was there before, and is longer" * 50)
        tokenizer = student.tokenizer.CharTokenizer.from_text(text)
        characters = text_cases.check_tokenizer(tokenizer, text)
        tokenizer.save(path)
        text_cases.check_saved(scratch_bytes(student, path, 100_000), characters)
        text_cases.check_loaded(student.tokenizer.CharTokenizer.load(path), characters, text)
    text_cases.check_load(student)


# Exercise 7.2


@weight(1)
@number("7.2")
def test_get_batch_gives_windows_of_the_text_and_what_comes_next(student, rng):
    """Rows of int64 that are windows of the text; y is x, shifted by one position."""
    get_batch = student.training.get_batch
    for length, batch_size, context_length in ((30, 4, 5), (9, 7, 8), (50, 1, 3), (12, 3, 1)):
        data, generator = draw_text(rng, length), torch_generator(student, 3)
        for given in (data, spread_out(data)):
            batch = get_batch(given, batch_size, context_length, generator)
            starts_of(data, batch, batch_size, context_length)
        check_unchanged("get_batch", get_batch, data, batch_size, context_length, generator)
    text_cases.check_batch_refused(get_batch, torch_generator(student, 0))


@weight(1)
@number("7.2")
def test_get_batch_draws_every_window_equally_often(student, rng):
    """The first and the last one too, and each row independently of the others.

    20,000 draws exceed the tolerance with a probability below 1e-6.
    """
    get_batch = student.training.get_batch
    for windows, context_length, seed in ((6, 3, 11), (2, 5, 12)):
        data, generator = draw_text(rng, windows + context_length), torch_generator(student, seed)
        batch = get_batch(data, 2 * PAIRS, context_length, generator)
        text_cases.check_uniform(data, batch, context_length)
    data, generator = draw_text(rng, 8 + 3), torch_generator(student, 13)
    text_cases.check_repeats(data, [get_batch(data, 8, 3, generator) for _ in range(10)])


@weight(1)
@number("7.2")
def test_get_batch_draws_from_its_generator_alone(student, rng):
    """The same generator gives the same batches; two calls in a row draw twice."""
    data, drawn = draw_text(rng, 500), []
    for own_seed, seed in ((1, 5), (2, 5), (2, 6)):
        seed_torch(student, own_seed)
        generator = torch_generator(student, seed)
        batches = [student.training.get_batch(data, 8, 4, generator) for _ in range(2)]
        drawn.append([starts_of(data, batch, 8, 4) for batch in batches])
    text_cases.compare_draws(*drawn)


@weight(1)
@number("7.2")
@tags("gpu")
def test_get_batch_on_a_gpu_gives_what_it_gives_on_a_cpu(student, rng):
    """The same windows for the same generator, and both tensors are on the GPU."""
    data, get_batch = draw_text(rng, 200), student.training.get_batch
    arguments = [(data, 5, 7, torch_generator(student, 4), device) for device in ("cpu", "cuda")]
    on_cpu, on_gpu = (unpack(get_batch(*given), 2, "get_batch") for given in arguments)
    for name, right, actual in zip(("x", "y"), on_cpu, on_gpu, strict=True):
        assert_close(actual, right, what=f"{name} on the GPU", axes=("row", "position"))
    devices = devices_of(get_batch, data, 5, 7, torch_generator(student, 4), "cuda")
    assert_equal(devices, ["cuda", "cuda"], what="the devices of x and y")


# Exercise 7.3


@weight(1)
@number("7.3")
def test_attention_is_pytorchs_with_copied_weights(student, rng, oracle):
    """Names, outputs and all gradients are nn.MultiheadAttention's with a causal mask."""
    for n, t, d_model, num_heads in ((2, 3, 6, 2), (1, 5, 8, 4), (3, 1, 4, 1), (2, 4, 3, 3)):
        settings = SMALL_BLOCK | {"d_model": d_model, "num_heads": num_heads}
        block_cases.check_names(student.model, "CausalSelfAttention", settings)
        block = draw_block(rng, "CausalSelfAttention", **settings)
        x = draw_vectors(rng, n, t, d_model)
        drawn = draw_vjp(rng, oracle, block, x)
        check_gradients(block.on(student.model), drawn, f"d_model {d_model}, {num_heads} heads")


@weight(1)
@number("7.3")
def test_project_gives_queries_keys_and_values_by_head(student, rng):
    """(n, num_heads, t, d_head) each, in this order; float32 and views too."""
    double, single = torch.float64, torch.float32
    for n, t, d_model, num_heads, dtype in (
        (2, 3, 6, 2, double),
        (1, 4, 8, 4, double),
        (3, 1, 5, 1, double),
        (2, 3, 6, 3, single),
    ):
        block = draw_block(rng, "CausalSelfAttention", dtype, d_model=d_model, num_heads=num_heads)
        x = draw_vectors(rng, n, t, d_model, dtype=dtype)
        block_cases.check_project(block.on(student.model).project, block, x)


@weight(1)
@number("7.3")
def test_attend_takes_queries_of_the_last_positions(student, rng, oracle):
    """As many queries as keys, fewer, and a single one; outputs and gradients, views, float32."""
    double, single = torch.float64, torch.float32
    for n, queries, keys, num_heads, dtype in (
        (2, 4, 4, 2, double),
        (1, 2, 5, 3, double),
        (3, 1, 6, 2, double),
        (2, 5, 7, 1, double),
        (1, 1, 1, 2, double),
        (2, 3, 5, 2, single),
    ):
        block = draw_block(rng, "CausalSelfAttention", dtype, d_model=6, num_heads=num_heads)
        shapes = [(n, num_heads, t, 6 // num_heads) for t in (queries, keys, keys)]
        inputs = [draw_vectors(rng, *shape, dtype=dtype) for shape in shapes]
        drawn = draw_vjp(rng, oracle, block, *inputs, part=".attend")
        attend = block.on(student.model).attend
        block_cases.check_attend(attend, drawn, f"{queries} queries, {keys} keys")


@weight(1)
@number("7.3")
def test_mlp_is_two_linear_layers_with_an_exact_gelu_between(student, rng, oracle):
    """4 * d_model hidden features; names, outputs and gradients are nn.Linear's and nn.GELU's."""
    block_cases.check_names(student.model, "MLP", SMALL_BLOCK)
    for n, t, d_model in ((2, 3, 4), (1, 4, 5), (3, 1, 1)):
        block = draw_block(rng, "MLP", d_model=d_model, num_heads=1)
        x = 2 * draw_vectors(rng, n, t, d_model)
        drawn = draw_vjp(rng, oracle, block, x)
        check_gradients(block.on(student.model), drawn, f"d_model {d_model}")
    block, x = draw_block(rng, "MLP"), 1e3 * draw_vectors(rng, 2, 4, SMALL["d_model"])
    compare(block.on(student.model)(x), expected_output(oracle, block, x), "x near 1000")


@weight(1)
@number("7.3")
def test_block_is_pytorchs_layer_with_its_norms_first(student, rng, oracle):
    """Names, outputs and all gradients are those of nn.TransformerEncoderLayer."""
    for n, t, d_model, num_heads in ((2, 3, 6, 2), (1, 4, 8, 4), (3, 1, 4, 1)):
        settings = SMALL_BLOCK | {"d_model": d_model, "num_heads": num_heads}
        block_cases.check_names(student.model, "Block", settings)
        block = draw_block(rng, "Block", **settings)
        x = 2 * draw_vectors(rng, n, t, d_model) + 1
        drawn = draw_vjp(rng, oracle, block, x)
        check_gradients(block.on(student.model), drawn, f"d_model {d_model}, {num_heads} heads")
    block, x = draw_block(rng, "Block"), 1e3 * draw_vectors(rng, 2, 4, SMALL["d_model"])
    compare(block.on(student.model)(x), expected_output(oracle, block, x), "x near 1000")


@weight(1)
@number("7.3")
def test_blocks_use_dropout_in_training_mode_keep_types_and_reject_other_vectors(
    student, rng, oracle
):
    """Dropout on weights and on the outputs of attention and MLP only; float32, views; errors."""
    for part, shape in (
        ("CausalSelfAttention", (500, 1, 6)),
        ("MLP", (50, 10, 6)),
        ("Block.attention", (50, 10, 6)),
        ("Block.mlp", (50, 10, 6)),
    ):
        block, levels, what = block_cases.draw_for_dropout(rng, part, 6, 0.3)
        x = draw_vectors(rng, *shape)
        out = block.on(student.model, dropout=0.3)(x)
        check_tensor(out, shape)
        check_levels(out - x if block.kind == "Block" else out, levels, what)
    d_model = SMALL["d_model"]
    for kind in ("CausalSelfAttention", "MLP", "Block"):
        x, block = draw_vectors(rng, 2, 3, d_model), draw_block(rng, kind)
        module, expected = block.on(student.model, dropout=0.5), expected_output(oracle, block, x)
        check_evaluation(module, kind, x, expected)
        single, floats = draw_block(rng, kind, torch.float32), x.float()
        drawn = draw_vjp(rng, oracle, single, floats)
        check_gradients(single.on(student.model), drawn, "float32")
        second, block = draw_vectors(rng, 1, 5, d_model), draw_block(rng, kind)
        inputs = view_of(x), second
        check_calls_stay_apart(block.on(student.model), oracle, block, inputs)
        module = draw_block(rng, kind).on(student.model)
        block_cases.check_vectors_refused(module, kind, draw_vectors(rng, 2, 3, d_model + 1))


# Exercise 7.4


@weight(1)
@number("7.4")
def test_gpt_has_the_parameters_that_the_docstring_names(student):
    """Names, shapes and initialization; num_parameters counts the tied matrix once."""
    settings = {
        "vocab_size": 70,
        "context_length": 60,
        "num_layers": 2,
        "num_heads": 4,
        "d_model": 64,
    }
    model_cases.check_first_values(student.model, settings)
    model_cases.check_first_values(student.model, settings | {"num_layers": 5})
    for some in (settings, SMALL, {"vocab_size": 70, **{n: 1 for n in SMALL if n != "vocab_size"}}):
        module = new_module(student.model, "GPT", **some)
        assert_equal(module.num_parameters(), count_parameters(some), what="num_parameters()")
    config = student.model.GPTConfig.for_device(70, "cpu")
    assert_equal(student.model.GPT(config).num_parameters(), 810_496, what="num_parameters()")


@weight(1)
@number("7.4")
def test_gpt_is_pytorchs_with_copied_weights(student, rng, oracle):
    """Logits and all gradients are those of PyTorch's layers; fewer tokens than the context too."""
    for n, t, settings in (
        (2, 6, {}),
        (1, 3, {"num_layers": 1, "num_heads": 4}),
        (3, 1, {"vocab_size": 11, "num_layers": 3, "d_model": 6}),
        (2, 5, {"context_length": 9, "num_heads": 1, "d_model": 5}),
    ):
        model = draw_model(rng, **settings)
        tokens = draw_tokens(rng, model.settings["vocab_size"], n, t)
        drawn = draw_vjp(rng, oracle, model, tokens)
        check_gradients(model.on(student.model), drawn, f"{n} sequences of {t}")


@weight(1)
@number("7.4")
def test_loss_is_the_mean_cross_entropy_over_all_positions(student, rng, oracle):
    """A tensor without axes, with all gradients; float32 and views; None without targets."""
    for situation, n, t, dtype, settings in (
        ("2 of 3", 2, 3, torch.float64, {}),
        ("1 of 6", 1, 6, torch.float64, {"num_layers": 1}),
        ("4 of 1", 4, 1, torch.float64, {"vocab_size": 12}),
        ("float32", 2, 4, torch.float32, {}),
    ):
        model = draw_model(rng, dtype, **settings)
        batch = draw_batch(rng, model.settings["vocab_size"], n, t)
        drawn = model_cases.draw_loss_vjp(rng, oracle, model, batch)
        model_cases.check_loss(model.on(student.model), drawn, situation)


@weight(1)
@number("7.4")
def test_a_token_changes_no_logits_before_it_nor_in_other_sequences(student, rng, oracle):
    """Causality: changing token t never changes logits before t. Rows are independent."""
    for settings in ({}, {"num_layers": 3, "num_heads": 4}):
        model = draw_model(rng, **settings)
        module, tokens = model.on(student.model), draw_tokens(rng, 7, 2, 6)
        model_cases.check_causal(module, model, tokens, oracle=oracle, rng=rng)
        tokens = draw_tokens(rng, 7, 4, 5)
        model_cases.check_rows_alone(model.on(student.model), model, tokens, oracle)


@weight(1)
@number("7.4")
def test_the_output_layer_is_the_token_embedding(student, rng, oracle):
    """Changing a row of the embedding changes that token's logits; also embed and logits alone.

    embed counts positions from start, logits is the final norm and the tied layer.
    """
    model = draw_model(rng)
    module, tokens = model.on(student.model), draw_tokens(rng, 7, 2, 3)
    model_cases.check_tied(module, model, tokens, oracle)
    for n, t, start in ((2, 3, 0), (1, 6, 0), (3, 2, 4), (2, 1, 5), (1, 3, 1)):
        tokens = draw_tokens(rng, 7, n, t)
        expected = expected_output(oracle, model, tokens, start, part=".embed")
        model_cases.check_embed(model.on(student.model).embed, tokens, start, expected)
    for dtype, n, t in ((torch.float64, 2, 3), (torch.float32, 1, 4)):
        if dtype == torch.float32:
            model = draw_model(rng, dtype)
        x = draw_vectors(rng, n, t, SMALL["d_model"], dtype=dtype)
        expected = expected_output(oracle, model, x, part=".logits")
        module = model.on(student.model)
        assert_close(module.logits(x), expected, "logits", LOGIT_AXES)
        check_unchanged("logits", module.logits, x)


@weight(1)
@number("7.4")
def test_a_new_gpt_has_a_loss_near_ln_of_the_vocabulary(student, rng):
    """At initialization all tokens are about equally likely: the logits are small."""
    for vocab_size in (20, 70, 300):
        seed_torch(student, int(rng.integers(2**31)))
        module = new_module(student.model, "GPT", **NEW, vocab_size=vocab_size)
        batch = draw_batch(rng, vocab_size, 16, NEW["context_length"])
        model_cases.check_first_loss(module(*batch), vocab_size)


@weight(1)
@number("7.4")
def test_gpt_uses_dropout_in_training_mode_keeps_types_and_rejects_bad_ids(student, rng, oracle):
    """Dropout on token vectors and in blocks; float32, views, unchanged inputs; a ValueError."""
    for where in ("embedding", "mlp"):
        module = model_cases.model_for_dropout(where, 6).on(student.model, dropout=0.3)
        model_cases.check_dropout(module(torch.full((20, 6), WIDE)), (20, 6), where, 0.3)
    tokens, second = draw_tokens(rng, 7, 2, 5), draw_tokens(rng, 7, 3, 4)
    model = draw_model(rng)
    module = model.on(student.model, dropout=0.5)
    check_evaluation(module, "GPT", tokens, expected_output(oracle, model, tokens))
    single = draw_model(rng, torch.float32)
    drawn = draw_vjp(rng, oracle, single, tokens)
    check_gradients(single.on(student.model), drawn, "float32")
    model, inputs = draw_model(rng), (view_of(tokens), second)
    check_calls_stay_apart(model.on(student.model), oracle, model, inputs)
    model = draw_model(rng, vocab_size=7, context_length=5)
    model_cases.check_ids_refused(model.on(student.model), rng)


# Exercise 7.5


@weight(1)
@number("7.5")
def test_learning_rate_has_a_linear_warm_up_and_a_cosine_decay(student, oracle):
    """With max_lr 1, warmup 4, total 12: 0.25 at step 1, 1 at 4, 0.5 at 8, 0 from 12 on."""
    learning_rate_at = student.training.learning_rate_at
    for step, expected in ((1, 0.25), (2, 0.5), (4, 1.0), (8, 0.5), (6, 0.8535533905932737)):
        rate = learning_rate_at(step, 1.0, 4, 12)
        assert_close(rate, expected, what=f"the learning rate of step {step}")
    for schedule, steps in (
        ((1.0, 4, 12, 0.0), range(1, 16)),
        ((3e-3, 10, 50, 3e-4), (1, 9, 10, 11, 30, 49, 50, 51, 1000)),
        ((2.0, 0, 5, 0.5), range(1, 8)),
        ((1.0, 1, 2, 1.0), (1, 2, 3)),
    ):
        optimizer_cases.check_rates(learning_rate_at, schedule, steps, oracle)
    optimizer_cases.check_rates_refused(learning_rate_at)


@weight(1)
@number("7.5")
def test_weight_decay_is_for_matrices_alone(student, rng):
    """With gradients of 0, matrices shrink by rate * decay in each step, and vectors don't."""
    for kind, dtype, rate, decay in (
        ("GPT", torch.float64, 0.1, 0.5),
        ("GPT", torch.float64, 0.01, 2.0),
        ("GPT", torch.float64, 0.3, 0.0),
        ("MLP", torch.float32, 0.1, 0.3),
    ):
        model = draw_block(rng, kind, dtype)
        module = model.on(student.model)
        optimizer = student.training.configure_optimizer(module, rate, decay)
        optimizer_cases.check_decay(optimizer, module, model, rate * decay)


@weight(1)
@number("7.5")
def test_the_optimizer_is_adamw_with_its_default_settings(student, rng, oracle):
    """All parameters are updated as by torch.optim.AdamW, with the given betas."""
    for kind, dtype, rate, decay, betas in (
        ("GPT", torch.float64, 0.01, 0.1, {}),
        ("Block", torch.float64, 0.1, 0.3, {"betas": (0.8, 0.99)}),
        ("GPT", torch.float32, 0.02, 0.0, {}),
    ):
        model = draw_block(rng, kind, dtype)
        module = model.on(student.model)
        optimizer = student.training.configure_optimizer(module, rate, decay, **betas)
        right = oracle.Optimizer(model.parameters, rate, decay, **betas)
        optimizer_cases.check_adamw(optimizer, module, model, right=right, rng=rng)


@weight(1)
@number("7.5")
def test_train_step_follows_the_gradient_clipped_to_max_norm(student, rng, oracle):
    """Above max_norm the gradient is scaled down to it; the loss is the one before the update."""
    model, train_step = draw_model(rng), student.training.train_step
    for share, situation in (
        (3.0, "below max_norm"),
        (0.4, "above max_norm"),
        (0.01, "far above max_norm"),
    ):
        batches = draw_batches(rng, model, 1, (3, 5))
        max_norm, rate, right = optimizer_cases.plan_step(oracle, model, batches, share)
        module = model.on(student.model)
        loss = train_step(module, gradient_descent(module, rate), batches, max_norm)
        optimizer_cases.compare_step(loss, module, right, situation)
    batches = draw_batches(rng, model, 1, (2, 2))
    wanted = optimizer_cases.expected_default_step(oracle, model, batches)
    module = model.on(student.model)
    train_step(module, gradient_descent(module, 0.5), batches)
    optimizer_cases.compare_parameters(module, wanted, "max_norm not given", CLIPPED)


@weight(1)
@number("7.5")
def test_train_step_with_several_batches_is_one_with_all_rows_at_once(student, rng, oracle):
    """The update and the loss are those of one large batch, clipped together; views too."""
    model, train_step = draw_model(rng), student.training.train_step
    for count, n, t in ((2, 3, 4), (4, 1, 6), (3, 2, 1)):
        for share in (3.0, 0.5):
            batches = draw_batches(rng, model, count, (n, t))
            max_norm, rate, right = optimizer_cases.plan_step(oracle, model, batches, share)
            module = model.on(student.model)
            given = [tuple(map(view_of, batch)) for batch in batches] if count == 2 else batches
            loss = train_step(module, gradient_descent(module, rate), given, max_norm)
            situation = f"{count} batches, {'clipped' if share < 1 else 'not clipped'}"
            optimizer_cases.compare_step(loss, module, right, situation)
    batches = draw_batches(rng, model, 2, (2, 5))
    module = model.on(student.model)
    optimizer_cases.check_leftovers(train_step, module, model, batches, oracle=oracle, rng=rng)
    optimizer_cases.check_adam_steps(student, oracle, rng, model, max_norm=0.3)
    module = model.on(student.model)
    optimizer, batches = gradient_descent(module, 0.1), draw_batches(rng, model, 1, (1, 1))
    check(train_step(module, optimizer, batches) is not None, "No loss.")
    check_refused("no batches", train_step, module, optimizer, [])


@weight(1)
@number("7.5")
def test_autocast_rounds_the_forward_pass_and_leaves_the_weights_alone(student, rng, oracle):
    """bfloat16 changes loss and gradients by a little; parameters stay float32."""
    model = draw_model(rng, torch.float32, vocab_size=20, context_length=8, d_model=16, num_heads=2)
    batches = draw_batches(rng, model, 2, (2, 8))
    right = optimizer_cases.expected_step(oracle, model, batches, rate=1.0)
    module = model.on(student.model)
    optimizer = gradient_descent(module, 1.0)
    loss = student.training.train_step(module, optimizer, batches, NO_CLIP, True)
    optimizer_cases.check_autocast(loss, module, model, right)


@weight(1)
@number("7.5")
@tags("timing")
def test_a_training_step_is_about_as_fast_as_with_pytorchs_layers(
    student, rng, oracle, leaderboard
):
    """At most twice the time of nn.TransformerEncoderLayer's, for the sizes of a CPU."""
    optimizer_cases.check_step_speed(student, oracle, rng, leaderboard)


# Exercise 7.6


@weight(1)
@number("7.6")
def test_estimate_loss_is_the_mean_over_random_batches_without_dropout(student, rng, oracle):
    """The batches of get_batch; mode, weights and gradients don't change."""
    for length, batch_size, batches in ((7, 2, 3), (40, 3, 4), (20, 1, 1)):
        model, data = draw_model(rng), draw_tokens(rng, 7, length)
        sizes = {"batch_size": batch_size, "batches": batches}
        training_cases.check_estimate(student, oracle, model, data, **sizes, seed=5)
    module, generator = draw_model(rng).on(student.model), torch_generator(student, 0)
    data = draw_tokens(rng, 7, SMALL["context_length"] + 1)
    training_cases.check_estimate_refused(student.training.estimate_loss, module, data, generator)


@weight(1)
@number("7.6")
def test_train_takes_the_steps_that_the_docstring_describes(student, rng, oracle):
    """Losses, rates, validations and weights, step by step, and each step's random windows."""
    config = {"steps": 5, "batch_size": 2, "grad_accum_steps": 2, "max_lr": 0.02, "min_lr": 0.005}
    config |= {"warmup": 2, "weight_decay": 0.3, "max_norm": 0.2, "evaluate_batches": 2}
    model = draw_model(rng, **TINY)
    every = {"evaluate_every": 2, "max_norm": 50.0, "grad_accum_steps": 1}
    for situation, changes, validations in (
        ("one validation", {}, [5]),
        ("validations, not clipped", every, [2, 4, 5]),
        ("stopped early", {"stop": 4, "evaluate_every": 2, "warmup": 0}, [2, 4]),
    ):
        # Two texts of a single window each: all batches are the same, whatever is drawn.
        given, texts = config | changes, draw_batch(rng, 5, 5)
        right = training_cases.expected_run(oracle, model, texts, given, validations=validations)
        module, made = model.on(student.model), student.training.TrainConfig(**given)
        history = student.training.train(module, spread_out(texts[0]), made, texts[1])
        training_cases.compare_run(history, module, right, situation)
    sizes = {"steps": 3, "batch_size": 3, "grad_accum_steps": 2, "seed": 7}
    data = draw_tokens(rng, TINY["vocab_size"], 40)
    training_cases.check_windows_read(student, oracle, model, data, **sizes)


@weight(1)
@number("7.6")
def test_train_starts_from_its_seed_uses_dropout_and_is_not_affected_by_validation(
    student, rng, oracle
):
    """The same seed gives the same run; validations change nothing; NaN errors name the step."""
    training_cases.check_modes(student, rng, 3, 5)
    training_cases.check_validation_apart(student, rng, 4, 3)
    training_cases.check_autocast_of_train(student, rng, 4)
    training_cases.check_train_refused(student, rng)


@weight(1)
@number("7.6")
def test_a_checkpoint_restores_everything(student, rng):
    """Weights, optimizer, step, generator and dropout's random state, in a safetensors file."""
    checkpoint_cases.check_round_trip(student, rng, 5, 7)
    checkpoint_cases.check_round_trip(student, rng, 8, 123, num_layers=2, d_model=6)


@weight(1)
@number("7.6")
def test_an_unusable_checkpoint_changes_nothing(student, rng):
    """Missing, truncated, or of another model: a ValueError with the path in it."""
    checkpoint_cases.check_refused_files(student, rng, 4)


@weight(1)
@number("7.6")
def test_a_stopped_and_resumed_run_gives_the_same_numbers(student, rng):
    """Bit for bit, with dropout; files are written when due; at its end it does nothing."""
    checkpoint_cases.check_resume(student, rng, steps=6, stop=3, seed=5)
    checkpoint_cases.check_saves(student, rng, 2)


@weight(1)
@number("7.6")
@tags("training")
def test_a_gpt_that_is_trained_from_scratch_learns_to_spell(student, rng, oracle):
    """A small model on the plays: its loss starts near ln(vocab_size), and falls enough."""
    plays = load_shakespeare("plays")
    characters = text_cases.characters_of(plays.train)
    settings = training_cases.PLAYS | {"vocab_size": len(characters)}
    seed_torch(student, int(rng.integers(2**31)))
    module = new_module(student.model, "GPT", **settings)
    data = training_cases.encoded(plays.train[: training_cases.READ], characters)
    config = student.training.TrainConfig(**training_cases.PLAYS_RUN, seed=int(rng.integers(1000)))
    history = student.training.train(module, data, config)
    training_cases.read_history(history, range(1, training_cases.PLAYS_RUN["steps"] + 1), [])
    uniform = math.log(len(characters))
    check(
        abs(history["loss"][0] - uniform) < training_cases.FIRST_TOLERANCE,
        "The first loss of training from scratch is not near ln(vocab_size).",
        f"got {history['loss'][0]:.3f}, expected about {uniform:.3f}",
    )
    held_out = training_cases.encoded(plays.validation, characters)
    windows = held_out.unfold(0, settings["context_length"] + 1, 1)
    batch = windows[torch.from_numpy(rng.integers(len(windows), size=500))]
    weights = named_weights(parameters_of(module), settings)
    loss = oracle.loss(settings, weights, batch[:, :-1], batch[:, 1:])
    threshold = training_cases.PLAYS_THRESHOLD
    check(
        loss < threshold,
        f"After a short training run, the loss on other plays must be below {threshold}.",
        f"It is {loss:.3f}.",
        "If all other tests pass: did you change GPTConfig or TrainConfig?",
    )


# Exercise 7.7


@weight(1)
@number("7.7")
def test_next_probabilities_are_softmax_then_top_k_then_top_p(student, rng):
    """Temperature first, then top-k, then as many as reach top_p; rescaled to a sum of 1."""
    next_probabilities = student.sampling.next_probabilities
    logits = torch.tensor([0.1, 0.4, 0.3, 0.2], dtype=torch.float64).log()
    for settings, right in (
        ({}, [0.1, 0.4, 0.3, 0.2]),
        ({"temperature": 0.5}, [1 / 30, 16 / 30, 9 / 30, 4 / 30]),
        ({"temperature": 0.0}, [0, 1, 0, 0]),
        ({"top_k": 2}, [0, 4 / 7, 3 / 7, 0]),
        ({"top_p": 0.75}, [0, 4 / 9, 3 / 9, 2 / 9]),
        ({"top_p": 1e-6}, [0, 1, 0, 0]),
        ({"top_k": 3, "top_p": 0.75}, [0, 4 / 7, 3 / 7, 0]),
    ):
        case = (
            f"worked example, {settings}",
            logits,
            torch.tensor(right, dtype=torch.float64),
            settings,
        )
        check_probabilities(next_probabilities, case)
    heats, counts = (1.0, 0.5, 3.0, 0.0, 0.01), (1, 3, 6, 7, 8, 100)
    ranked, both = draw_ranked_tokens(rng, 7), {"temperature": 2.0, "top_k": 4}
    for case in sampling_cases.probability_cases(ranked, heats, counts, **both):
        check_probabilities(next_probabilities, case)
    single = sampling_cases.single_case(draw_ranked_tokens(rng, 5), 0.7, 4)
    large = torch.tensor([999.0, -1000.0, 1001.0, 1000.0], dtype=torch.float64)
    weights = torch.tensor([math.exp(-2), 0, 1, math.exp(-1)], dtype=torch.float64)
    for case in (
        single,
        ("logits near 1e3", large, weights / weights.sum(), {"top_k": 3}),
        ("one token", logits[:1], torch.ones_like(logits[:1]), {"top_p": 0.5}),
    ):
        check_probabilities(next_probabilities, case)
    sampling_cases.check_probabilities_refused(next_probabilities, logits)


@weight(1)
@number("7.7")
def test_next_window_drops_the_oldest_half_when_it_is_full(student, rng):
    """Odd contexts too, and a context of 1; the argument doesn't change."""
    next_window = student.sampling.next_window
    for window, context_length, expected in (
        ([1, 2, 3], 4, [1, 2, 3, 9]),
        ([1, 2, 3, 4], 4, [3, 4, 9]),
        ([1, 2, 3, 4, 5], 5, [4, 5, 9]),
        ([], 4, [9]),
        ([7], 1, [9]),
    ):
        found = next_window(window, 9, context_length)
        sampling_cases.compare_window(found, expected, len(window), context_length)
    for context_length in (1, 2, 3, 6, 7):
        tokens = rng.integers(50, size=3 * context_length + 2).tolist()
        sampling_cases.check_windows(next_window, context_length, tokens)


@weight(1)
@number("7.7")
def test_generate_takes_the_most_likely_token_at_temperature_0(student, rng, oracle):
    """Past the context too, and after a longer prompt; the model stays in its mode."""
    for settings in (
        {"num_heads": 8},
        {},
        {"num_layers": 3},
        {"context_length": 5},
        {"context_length": 1},
        {"vocab_size": 20},
    ):
        model, generate = draw_model(rng, **settings), student.sampling.generate
        vocab_size = model.settings["vocab_size"]
        prompts = [draw_tokens(rng, vocab_size, size) for size in (1, 3, 6, 15)]
        module = model.on(student.model, dropout=0.5)
        sampling_cases.check_greedy(generate, module, model, prompts, length=40, oracle=oracle)


@weight(1)
@number("7.7")
def test_generate_draws_with_the_probabilities_of_the_next_token(student, rng, oracle):
    """Long texts show them; right draws exceed the tolerance with a probability below 1e-6."""
    for length, seed, settings in (
        (1000, 1, {}),
        (1000, 2, {"temperature": 2.0, "top_k": 2}),
        (500, 3, {"temperature": 1.5, "top_p": 0.8}),
    ):
        model, given = draw_model(rng, **CHAIN), {"generator": torch_generator(student, seed)}
        module, prompt = model.on(student.model), torch.tensor([0])
        tokens = student.sampling.generate(module, prompt, length, **settings, **given)
        check_ids(tokens, (length + 1,), 3, "What generate returns")
        next_probabilities = partial(student.sampling.next_probabilities, **settings)
        sampling_cases.check_draws(tokens, model, next_probabilities, oracle)


@weight(1)
@number("7.7")
def test_generate_draws_from_its_generator_alone_and_rejects_bad_arguments(student, rng):
    """The same generator gives the same tokens; a length of 0 gives the prompt; ValueErrors."""
    model, generate = draw_model(rng), student.sampling.generate
    sampling_cases.check_generator_alone(student, generate, model, 5)
    sampling_cases.check_nothing_to_write(generate, model.on(student.model), model, rng)
    sampling_cases.check_generate_refused(generate, model.on(student.model), 7)


# Exercise 7.8


@weight(1)
@number("7.8")
def test_the_cache_holds_keys_and_values_of_each_layer(student, rng):
    """extend returns all so far, earlier results don't change, and the context is the limit."""
    for pieces, n, dtype, settings in (
        ((3, 1, 2), 2, torch.float64, {"num_layers": 2}),
        ((1, 1), 1, torch.float64, {"num_layers": 3, "context_length": 4}),
        ((4,), 2, torch.float32, {"num_layers": 1, "num_heads": 4}),
    ):
        model = draw_model(rng, **settings)
        cache = cache_cases.new_cache(student, model)
        total, num_layers = sum(pieces), range(settings["num_layers"])
        whole = [
            cache_cases.draw_keys_and_values(rng, model, n, total, dtype=dtype) for _ in num_layers
        ]
        cache_cases.check_cache(cache, whole, pieces)
        room = model.settings["context_length"] - total
        more = cache_cases.draw_keys_and_values(rng, model, n, room + 1, dtype=dtype)
        check_refused("more tokens than the context", cache.extend, 0, *more)
        first = [values[:, :, : pieces[0]] for values in whole[0]]
        check_unchanged("extend", cache_cases.new_cache(student, model).extend, 0, *first)


@weight(1)
@number("7.8")
def test_forward_cached_in_pieces_is_the_model_at_once(student, rng, oracle):
    """The logits of each piece are those of all tokens so far, in float32 too."""
    for n, pieces in ((2, (3, 1, 2)), (1, (1, 1, 1, 1)), (3, (6,)), (2, (1, 4))):
        cache_cases.check_pieces(student, oracle, rng, draw_model(rng), n=n, pieces=pieces)
    single = draw_model(rng, torch.float32)
    cache_cases.check_pieces(student, oracle, rng, single, n=2, pieces=(2, 3))


@weight(1)
@number("7.8")
def test_generate_cached_gives_the_tokens_of_generate(student, rng, oracle):
    """For the same generator, past the context too; it rejects what generate rejects."""
    generate_cached = student.sampling.generate_cached
    for settings in ({}, {"context_length": 5, "num_layers": 1}, {"context_length": 1}):
        model = draw_model(rng, **settings)
        prompts = [draw_tokens(rng, model.settings["vocab_size"], size) for size in (1, 3, 13)]
        cache_cases.check_same_tokens(student, oracle, model, prompts, length=17, seed=6)
    sampling_cases.check_nothing_to_write(generate_cached, model.on(student.model), model, rng)
    sampling_cases.check_generator_alone(student, generate_cached, draw_model(rng), 5)
    sampling_cases.check_generate_refused(generate_cached, draw_model(rng).on(student.model), 7)


@weight(1)
@number("7.8")
def test_only_new_tokens_go_through_the_layers(student, rng, oracle):
    """Each token once, except when the context is full and a cut window is read again."""
    model, generate = draw_model(rng, context_length=8), student.sampling.generate_cached
    cache_cases.check_new_tokens_alone(student, oracle, rng, model, pieces=(3, 1, 2))
    for size, length in ((1, 7), (3, 20), (12, 9)):
        module, prompt = model.on(student.model), draw_tokens(rng, 7, size)
        cache_cases.check_each_token_once(generate, module, model, prompt, length=length)


@weight(1)
@number("7.8")
@tags("timing")
def test_generate_cached_takes_at_most_half_the_time(student, rng, oracle):
    """256 tokens at a context of 256, against PyTorch's layers without a cache."""
    cache_cases.check_cache_speed(student, oracle, rng)


# Exercise 7.9


@weight(1)
@number("7.9")
def test_summaries_speeds_and_flops_are_right(student, rng, oracle):
    """Percentiles are NumPy's, FLOPs are PyTorch's count; mfu and tokens per second."""
    summarize = student.timing.summarize
    for times in ([3.0, 1.0, 2.0], *timing_cases.draw_times(rng)):
        timing_cases.compare_summary(summarize(list(times)), times, oracle)
    check_refused("no times", summarize, [])
    timing_cases.check_speeds(student.timing, rng)
    large = {
        "vocab_size": 70,
        "context_length": 64,
        "num_layers": 4,
        "num_heads": 4,
        "d_model": 128,
    }
    for settings in (SMALL, large):
        config = student.model.GPTConfig(**settings)
        timing_cases.check_flops(student.timing.flops_per_token, config, settings, oracle)


@weight(1)
@number("7.9")
def test_time_ms_times_each_call_after_the_warm_up(student, rng):
    """The number of calls, and times between the calls' own and the judge's clock."""
    time_ms = student.timing.time_ms
    for warm, delays in (
        ([60.0, 40.0], [4.0, 12.0, 5.0, 8.0, 6.0]),
        ([], [10.0]),
        ([80.0], [3.0, 3.0]),
    ):
        timing_cases.check_paced(time_ms, rng, warm, delays)
    function = paced_function([0.2])
    timing = check_object(time_ms(function), "what time_ms returns", "a Timing")
    assert_equal(timing.n, 20, what="n, by default")
    assert_equal(function.calls, 23, what="the number of calls, by default")
    timing_cases.check_time_refused(time_ms, paced_function([0.1]))
    timing_cases.check_peak(student, rng)


@weight(1)
@number("7.9")
def test_naive_attention_needs_memory_with_the_square_of_the_length(student, rng, oracle):
    """It is F.scaled_dot_product_attention; the table shows bytes and times of both."""
    for shape, dtype in (
        ((2, 3, 5, 4), torch.float64),
        ((1, 1, 1, 3), torch.float64),
        ((1, 2, 7, 1), torch.float64),
        ((2, 2, 4, 3), torch.float32),
    ):
        *inputs, upstream = (draw_vectors(rng, *shape, dtype=dtype) for _ in range(4))
        timing_cases.check_naive_attention(student.timing.naive_attention, inputs, upstream, oracle)
    timing_cases.check_table(student, [256, 1024, 512], 9, 16)
    timing_cases.check_table_refused(student.timing.scaling_table)


@weight(1)
@number("7.9")
@tags("gpu")
def test_time_ms_on_a_gpu_measures_the_gpus_work(student):
    """A large product takes as long by events as by a clock that is synchronized."""
    timing_cases.check_time_on_gpu(student.timing.time_ms, product_function(student, 4096, "cuda"))


@weight(1)
@number("7.9")
@tags("gpu")
def test_peak_memory_on_a_gpu_is_the_most_that_was_alive(student, rng):
    """For tensors that are made one after another, the largest counts."""
    timing_cases.check_peak(student, rng, "cuda")


# Exercise 7.10


@weight(1)
@number("7.10")
def test_the_trained_model_is_readable_and_within_the_budget(artifact):
    """checkpoint.safetensors and config.json as export_model writes them; 11 million parameters."""
    read_model(artifact(CHECKPOINT), artifact(CONFIG))


@weight(1)
@number("7.10")
def test_the_trained_model_is_below_the_first_threshold(artifact, rng, oracle):
    """Its loss on the validation plays is below the first threshold."""
    check_trained(oracle, artifact, rng, "first")


@weight(1)
@number("7.10")
def test_the_trained_model_is_below_the_second_threshold(artifact, rng, oracle):
    """Its loss on the validation plays is below the second threshold."""
    check_trained(oracle, artifact, rng, "second")


# Exercises 7.11 and 7.12: the lab


@weight(1)
@number("7.11")
def test_q1_the_temperature_that_halves_a_ratio_of_4_is_right(lab):
    """Lab, question 1: 4 to the power of 1 / temperature is 2."""
    check_number(lab, "q1_temperature", math.log(4) / math.log(2), tolerance=0.01)


@weight(1)
@number("7.11")
def test_q2_the_perplexity_is_right(lab):
    """Lab, question 2: e to the power of the entropy."""
    probabilities = (0.60, 0.15, 0.09, 0.06, 0.04, 0.03, 0.02, 0.01)
    entropy = -sum(p * math.log(p) for p in probabilities)
    check_number(lab, "q2_perplexity", math.exp(entropy), tolerance=0.015)


@weight(1)
@number("7.11")
def test_q3_top_p_keeps_the_right_numbers_of_tokens(lab):
    """Lab, question 3: 0.60 + 0.15 + 0.09 + 0.06 reach 0.88, and so do eighteen times 0.05."""
    check_sizes(lab, "q3_kept", (4, 18))


@weight(1)
@number("7.12")
def test_q6_the_slope_of_the_losses_is_right(lab):
    """Lab, question 6: least squares on ln loss against ln tokens."""
    x = [math.log(tokens) for tokens in (102_400, 409_600, 819_200, 1_228_800)]
    y = [math.log(loss) for loss in (2.706, 2.343, 2.106, 1.970)]
    check_number(lab, "q6_slope", statistics.linear_regression(x, y).slope, tolerance=0.005)


@weight(1)
@number("7.12")
def test_q8_halving_the_part_that_depends_on_parameters_takes_the_right_factor(lab):
    """Lab, question 8: to the power of 0.34 it is 2; within 1 %."""
    factor = 2 ** (1 / 0.34)
    check_number(lab, "q8_times", factor, tolerance=factor / 100)


@weight(1)
@number("7.12")
def test_q9_the_mean_and_the_median_of_the_times_are_right(lab):
    """Lab, question 9: the mean of all eight times, the median without the first."""
    times = [9.1, 2.0, 2.1, 2.0, 2.2, 2.1, 30.5, 2.0]
    check_number(lab, "q9_mean", statistics.mean(times), tolerance=0.01)
    check_number(lab, "q9_median", statistics.median(times[1:]), tolerance=0.001)


@weight(1)
@number("7.12")
def test_q10_the_scores_take_the_right_number_of_bytes(lab):
    """Lab, question 10: 4 heads, 4096 times 4096 scores, 4 bytes each."""
    check_number(lab, "q10_bytes", 4 * 4096**2 * 4)
