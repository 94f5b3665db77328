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
    allocating_function,
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
    new_module,
    spread_out,
    view_of,
)
from tests.a7_minigpt.model_cases import NEW, WIDE
from tests.a7_minigpt.optimizer_cases import CLIPPED, NO_CLIP, draw_batches
from tests.a7_minigpt.sampling_cases import CHAIN, check_probabilities, draw_chances
from tests.a7_minigpt.text_cases import PAIRS, TEXTS, draw_text, starts_of
from tests.a7_minigpt.timing_cases import MEGABYTE
from tests.a7_minigpt.training_cases import TINY

# Exercise 7.1


@weight(1)
@number("7.1")
def test_from_text_finds_each_character_once_in_order(student):
    """By code points: a line break, capitals, small letters, then all others; not an empty text."""
    from_text = student.tokenizer.CharTokenizer.from_text
    tokenizer = from_text("banana\nABC")
    text_cases.check_tokenizer(tokenizer, "banana\nABC")
    assert_equal(tokenizer.vocabulary, "\nABCabn", what="the vocabulary of 'banana\\nABC'")
    for text in TEXTS:
        text_cases.check_tokenizer(from_text(text), text)
    check_refused("an empty text", from_text, "")


@weight(1)
@number("7.1")
def test_encode_gives_the_place_of_each_character_in_the_vocabulary(student):
    """int64, empty for an empty text, and a ValueError that shows an unknown character."""
    new = student.tokenizer.CharTokenizer
    for text in TEXTS:
        vocabulary = text_cases.check_tokenizer(new.from_text(text), text)
        text_cases.check_encoded(new(vocabulary).encode(text), vocabulary, text, "the ids")
        none = new(vocabulary).encode("")
        text_cases.check_encoded(none, vocabulary, "", "the ids of an empty text")
    long = 100_000 * "ab c\n"
    text_cases.check_encoded(new("\n abc").encode(long), "\n abc", long, "the ids of a long text")
    for text, unknown in (("abcd", "d"), ("a\nb", "\n"), ("ab'", "'"), ("aéb", "é")):
        text_cases.check_unknown(new("abc").encode, text, unknown)


@weight(1)
@number("7.1")
def test_decode_gives_the_text_back_and_refuses_ids_that_are_not_there(student, rng):
    """For tensors, views and lists; an id of -1 would silently be Python's last."""
    for vocabulary in ("\n !abc", "a", "AZaé日"):
        for length in (0, 1, 40):
            ids = rng.integers(len(vocabulary), size=length).tolist()
            decode = student.tokenizer.CharTokenizer(vocabulary).decode
            text_cases.check_decoded(decode, vocabulary, ids)
    for text in TEXTS:
        tokenizer = student.tokenizer.CharTokenizer.from_text(text)
        text_cases.check_tokenizer(tokenizer, text)
        assert_equal(tokenizer.decode(tokenizer.encode(text)), text, what="the text")


@weight(1)
@number("7.1")
def test_save_writes_json_that_load_reads(student):
    """{"vocabulary": "..."} in UTF-8; what is no such file is a ValueError."""
    path = scratch_path(student, "vocabulary.json")
    for text in TEXTS:
        write_scratch(student, path, b"what was there before, and is longer" * 50)
        tokenizer = student.tokenizer.CharTokenizer.from_text(text)
        vocabulary = text_cases.check_tokenizer(tokenizer, text)
        tokenizer.save(path)
        text_cases.check_saved(scratch_bytes(student, path, 100_000), vocabulary)
        text_cases.check_loaded(student.tokenizer.CharTokenizer.load(path), vocabulary, text)
    text_cases.check_load(student)


# Exercise 7.2


@weight(1)
@number("7.2")
def test_get_batch_gives_windows_of_the_text_and_what_comes_next(student, rng):
    """Rows of int64 that are windows of the text; y is x, one place further."""
    get_batch = student.training.get_batch
    for length, batch_size, block_size in ((30, 4, 5), (9, 7, 8), (50, 1, 3), (12, 3, 1)):
        data, generator = draw_text(rng, length), torch_generator(student, 3)
        for given in (data, spread_out(data)):
            batch = get_batch(given, batch_size, block_size, generator)
            starts_of(data, batch, batch_size, block_size)
        check_unchanged("get_batch", get_batch, data, batch_size, block_size, generator)
    text_cases.check_batch_refused(get_batch, torch_generator(student, 0))


@weight(1)
@number("7.2")
def test_get_batch_draws_every_window_equally_often(student, rng):
    """The first and the last one too, and each row whatever the others are.

    20,000 draws are off by as much as is allowed with a chance below 1e-6.
    """
    get_batch = student.training.get_batch
    for windows, block_size, seed in ((6, 3, 11), (2, 5, 12)):
        data, generator = draw_text(rng, windows + block_size), torch_generator(student, seed)
        batch = get_batch(data, 2 * PAIRS, block_size, generator)
        text_cases.check_uniform(data, batch, block_size)
    data, generator = draw_text(rng, 8 + 3), torch_generator(student, 13)
    text_cases.check_repeats(data, [get_batch(data, 8, 3, generator) for _ in range(10)])


@weight(1)
@number("7.2")
def test_get_batch_draws_from_its_generator_alone(student, rng):
    """The same generator gives the same batches; two batches in a row are two draws."""
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
        assert_close(actual, right, what=f"{name} on the GPU", axes=("row", "place"))
    devices = devices_of(get_batch, data, 5, 7, torch_generator(student, 4), "cuda")
    assert_equal(devices, ["cuda", "cuda"], what="the devices of x and y")


# Exercise 7.3


@weight(1)
@number("7.3")
def test_attention_is_pytorchs_with_copied_weights(student, rng, oracle):
    """Names, outputs and all gradients are nn.MultiheadAttention's with a causal mask."""
    for n, t, width, heads in ((2, 3, 6, 2), (1, 5, 8, 4), (3, 1, 4, 1), (2, 4, 3, 3)):
        settings = SMALL_BLOCK | {"width": width, "heads": heads}
        block_cases.check_names(student.model, "CausalSelfAttention", settings)
        block = draw_block(rng, "CausalSelfAttention", **settings)
        x = draw_vectors(rng, n, t, width)
        drawn = draw_vjp(rng, oracle, block, x)
        check_gradients(block.on(student.model), drawn, f"width {width}, {heads} heads")


@weight(1)
@number("7.3")
def test_project_gives_queries_keys_and_values_by_head(student, rng):
    """(n, heads, t, width / heads) each, in this order; float32 and views too."""
    double, single = torch.float64, torch.float32
    for n, t, width, heads, dtype in (
        (2, 3, 6, 2, double),
        (1, 4, 8, 4, double),
        (3, 1, 5, 1, double),
        (2, 3, 6, 3, single),
    ):
        block = draw_block(rng, "CausalSelfAttention", dtype, width=width, heads=heads)
        x = draw_vectors(rng, n, t, width, dtype=dtype)
        block_cases.check_project(block.on(student.model).project, block, x)


@weight(1)
@number("7.3")
def test_attend_takes_queries_of_the_last_places(student, rng, oracle):
    """As many queries as keys, fewer, and a single one; outputs and gradients, views, float32."""
    double, single = torch.float64, torch.float32
    for n, queries, keys, heads, dtype in (
        (2, 4, 4, 2, double),
        (1, 2, 5, 3, double),
        (3, 1, 6, 2, double),
        (2, 5, 7, 1, double),
        (1, 1, 1, 2, double),
        (2, 3, 5, 2, single),
    ):
        block = draw_block(rng, "CausalSelfAttention", dtype, width=6, heads=heads)
        shapes = [(n, heads, t, 6 // heads) for t in (queries, keys, keys)]
        inputs = [draw_vectors(rng, *shape, dtype=dtype) for shape in shapes]
        drawn = draw_vjp(rng, oracle, block, *inputs, part=".attend")
        attend = block.on(student.model).attend
        block_cases.check_attend(attend, drawn, f"{queries} queries, {keys} keys")


@weight(1)
@number("7.3")
def test_mlp_is_two_dense_layers_with_an_exact_gelu_between(student, rng, oracle):
    """Four times as wide inside; names, outputs and gradients are nn.Linear's and nn.GELU's."""
    block_cases.check_names(student.model, "MLP", SMALL_BLOCK)
    for n, t, width in ((2, 3, 4), (1, 4, 5), (3, 1, 1)):
        block = draw_block(rng, "MLP", width=width, heads=1)
        x = 2 * draw_vectors(rng, n, t, width)
        drawn = draw_vjp(rng, oracle, block, x)
        check_gradients(block.on(student.model), drawn, f"width {width}")
    block, x = draw_block(rng, "MLP"), 1e3 * draw_vectors(rng, 2, 4, SMALL["width"])
    compare(block.on(student.model)(x), expected_output(oracle, block, x), "x near 1000")


@weight(1)
@number("7.3")
def test_block_is_pytorchs_layer_with_its_norms_first(student, rng, oracle):
    """Names, outputs and all gradients are those of nn.TransformerEncoderLayer."""
    for n, t, width, heads in ((2, 3, 6, 2), (1, 4, 8, 4), (3, 1, 4, 1)):
        settings = SMALL_BLOCK | {"width": width, "heads": heads}
        block_cases.check_names(student.model, "Block", settings)
        block = draw_block(rng, "Block", **settings)
        x = 2 * draw_vectors(rng, n, t, width) + 1
        drawn = draw_vjp(rng, oracle, block, x)
        check_gradients(block.on(student.model), drawn, f"width {width}, {heads} heads")
    block, x = draw_block(rng, "Block"), 1e3 * draw_vectors(rng, 2, 4, SMALL["width"])
    compare(block.on(student.model)(x), expected_output(oracle, block, x), "x near 1000")


@weight(1)
@number("7.3")
def test_blocks_drop_out_in_training_mode_keep_types_and_refuse_other_vectors(student, rng, oracle):
    """Dropout on weights, on what attention and MLP give, nowhere else; float32, views; errors."""
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
    width = SMALL["width"]
    for kind in ("CausalSelfAttention", "MLP", "Block"):
        x, block = draw_vectors(rng, 2, 3, width), draw_block(rng, kind)
        module, expected = block.on(student.model, dropout=0.5), expected_output(oracle, block, x)
        check_evaluation(module, kind, x, expected)
        single, floats = draw_block(rng, kind, torch.float32), x.float()
        drawn = draw_vjp(rng, oracle, single, floats)
        check_gradients(single.on(student.model), drawn, "float32")
        second, block = draw_vectors(rng, 1, 5, width), draw_block(rng, kind)
        inputs = view_of(x), second
        check_calls_stay_apart(block.on(student.model), oracle, block, inputs)
        module = draw_block(rng, kind).on(student.model)
        block_cases.check_vectors_refused(module, kind, draw_vectors(rng, 2, 3, width + 1))


# Exercise 7.4


@weight(1)
@number("7.4")
def test_gpt_has_the_parameters_that_the_docstring_names(student):
    """Names, shapes and first values; num_parameters counts the tied matrix once."""
    settings = {"vocabulary": 70, "context": 60, "layers": 2, "heads": 4, "width": 64}
    model_cases.check_first_values(student.model, settings)
    model_cases.check_first_values(student.model, settings | {"layers": 5})
    for some in (settings, SMALL, {"vocabulary": 70, **{n: 1 for n in SMALL if n != "vocabulary"}}):
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
        (1, 3, {"layers": 1, "heads": 4}),
        (3, 1, {"vocabulary": 11, "layers": 3, "width": 6}),
        (2, 5, {"context": 9, "heads": 1, "width": 5}),
    ):
        model = draw_model(rng, **settings)
        tokens = draw_tokens(rng, model.settings["vocabulary"], n, t)
        drawn = draw_vjp(rng, oracle, model, tokens)
        check_gradients(model.on(student.model), drawn, f"{n} sequences of {t}")


@weight(1)
@number("7.4")
def test_loss_is_the_mean_cross_entropy_over_all_places(student, rng, oracle):
    """A tensor without axes, with all gradients; float32 and views; None without targets."""
    for situation, n, t, dtype, settings in (
        ("2 of 3", 2, 3, torch.float64, {}),
        ("1 of 6", 1, 6, torch.float64, {"layers": 1}),
        ("4 of 1", 4, 1, torch.float64, {"vocabulary": 12}),
        ("float32", 2, 4, torch.float32, {}),
    ):
        model = draw_model(rng, dtype, **settings)
        batch = draw_batch(rng, model.settings["vocabulary"], n, t)
        drawn = model_cases.draw_loss_vjp(rng, oracle, model, batch)
        model_cases.check_loss(model.on(student.model), drawn, situation)


@weight(1)
@number("7.4")
def test_a_token_changes_no_scores_before_it_nor_in_other_sequences(student, rng, oracle):
    """Causality: changing token t never changes logits before t. And rows are apart."""
    for settings in ({}, {"layers": 3, "heads": 4}):
        model = draw_model(rng, **settings)
        module, tokens = model.on(student.model), draw_tokens(rng, 7, 2, 6)
        model_cases.check_causal(module, model, tokens, oracle=oracle, rng=rng)
        tokens = draw_tokens(rng, 7, 4, 5)
        model_cases.check_rows_alone(model.on(student.model), model, tokens, oracle)


@weight(1)
@number("7.4")
def test_the_output_layer_is_the_token_embedding(student, rng, oracle):
    """Changing a row of the embedding changes that token's scores; embed and scores by themselves.

    embed counts places from start on, scores is the last norm and the tied layer.
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
        x = draw_vectors(rng, n, t, SMALL["width"], dtype=dtype)
        expected = expected_output(oracle, model, x, part=".scores")
        module = model.on(student.model)
        assert_close(module.scores(x), expected, "scores", LOGIT_AXES)
        check_unchanged("scores", module.scores, x)


@weight(1)
@number("7.4")
def test_a_new_gpt_has_a_loss_near_ln_of_the_vocabulary(student, rng):
    """All tokens are about equally likely at first: the scores are small."""
    for vocabulary in (20, 70, 300):
        seed_torch(student, int(rng.integers(2**31)))
        module = new_module(student.model, "GPT", **NEW, vocabulary=vocabulary)
        batch = draw_batch(rng, vocabulary, 16, NEW["context"])
        model_cases.check_first_loss(module(*batch), vocabulary)


@weight(1)
@number("7.4")
def test_gpt_drops_out_in_training_mode_keeps_types_and_refuses_odd_ids(student, rng, oracle):
    """Dropout on token vectors and in blocks; float32, views, inputs that stay; a ValueError."""
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
    model_cases.check_ids_refused(draw_model(rng, vocabulary=7, context=5).on(student.model), rng)


# Exercise 7.5


@weight(1)
@number("7.5")
def test_learning_rate_goes_up_in_a_line_and_down_along_a_cosine(student, oracle):
    """With peak 1, warmup 4 and total 12: 0.25 at step 1, 1 at 4, 0.5 at 8, and 0 from 12 on."""
    learning_rate = student.training.learning_rate
    for step, expected in ((1, 0.25), (2, 0.5), (4, 1.0), (8, 0.5), (6, 0.8535533905932737)):
        rate = learning_rate(step, 1.0, 4, 12)
        assert_close(rate, expected, what=f"the learning rate of step {step}")
    for schedule, steps in (
        ((1.0, 4, 12, 0.0), range(1, 16)),
        ((3e-3, 10, 50, 3e-4), (1, 9, 10, 11, 30, 49, 50, 51, 1000)),
        ((2.0, 0, 5, 0.5), range(1, 8)),
        ((1.0, 1, 2, 1.0), (1, 2, 3)),
    ):
        optimizer_cases.check_rates(learning_rate, schedule, steps, oracle)
    optimizer_cases.check_rates_refused(learning_rate)


@weight(1)
@number("7.5")
def test_weight_decay_is_for_matrices_alone(student, rng):
    """With gradients of 0, matrices shrink by rate * decay in each step, and vectors stay."""
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
def test_the_optimiser_is_adamw_with_its_usual_settings(student, rng, oracle):
    """All parameters step as torch.optim.AdamW steps them, with the betas that are given."""
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
def test_train_step_follows_the_gradient_that_is_clipped_if_it_is_too_long(student, rng, oracle):
    """Above clip the gradient is scaled down to it, below it stays; the loss is the one before."""
    model, train_step = draw_model(rng), student.training.train_step
    for share, situation in ((3.0, "below clip"), (0.4, "above clip"), (0.01, "far above clip")):
        batches = draw_batches(rng, model, 1, (3, 5))
        clip, rate, right = optimizer_cases.plan_step(oracle, model, batches, share)
        module = model.on(student.model)
        loss = train_step(module, gradient_descent(module, rate), batches, clip)
        optimizer_cases.compare_step(loss, module, right, situation)
    batches = draw_batches(rng, model, 1, (2, 2))
    wanted = optimizer_cases.expected_usual_step(oracle, model, batches)
    module = model.on(student.model)
    train_step(module, gradient_descent(module, 0.5), batches)
    optimizer_cases.compare_parameters(module, wanted, "clip not given", CLIPPED)


@weight(1)
@number("7.5")
def test_train_step_with_several_batches_is_one_with_all_rows_at_once(student, rng, oracle):
    """The update and the loss are those of one large batch, clipped together; views too."""
    model, train_step = draw_model(rng), student.training.train_step
    for count, n, t in ((2, 3, 4), (4, 1, 6), (3, 2, 1)):
        for share in (3.0, 0.5):
            batches = draw_batches(rng, model, count, (n, t))
            clip, rate, right = optimizer_cases.plan_step(oracle, model, batches, share)
            module = model.on(student.model)
            given = [tuple(map(view_of, batch)) for batch in batches] if count == 2 else batches
            loss = train_step(module, gradient_descent(module, rate), given, clip)
            situation = f"{count} batches, {'clipped' if share < 1 else 'not clipped'}"
            optimizer_cases.compare_step(loss, module, right, situation)
    batches = draw_batches(rng, model, 2, (2, 5))
    module = model.on(student.model)
    optimizer_cases.check_leftovers(train_step, module, model, batches, oracle=oracle, rng=rng)
    optimizer_cases.check_adam_steps(student, oracle, rng, model, clip=0.3)
    module = model.on(student.model)
    optimizer, batches = gradient_descent(module, 0.1), draw_batches(rng, model, 1, (1, 1))
    check(train_step(module, optimizer, batches) is not None, "No loss.")
    check_refused("no batches", train_step, module, optimizer, [])


@weight(1)
@number("7.5")
def test_autocast_rounds_the_forward_pass_and_leaves_the_weights_alone(student, rng, oracle):
    """bfloat16 changes loss and gradients by a little; parameters stay float32."""
    model = draw_model(rng, torch.float32, vocabulary=20, context=8, width=16, heads=2)
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
    """The batches that get_batch draws; mode, weights and gradients stay as they were."""
    for length, batch_size, batches in ((7, 2, 3), (40, 3, 4), (20, 1, 1)):
        model, data = draw_model(rng), draw_tokens(rng, 7, length)
        sizes = {"batch_size": batch_size, "batches": batches}
        training_cases.check_estimate(student, oracle, model, data, **sizes, seed=5)
    module, generator = draw_model(rng).on(student.model), torch_generator(student, 0)
    data = draw_tokens(rng, 7, SMALL["context"] + 1)
    training_cases.check_estimate_refused(student.training.estimate_loss, module, data, generator)


@weight(1)
@number("7.6")
def test_train_takes_the_steps_that_the_docstring_describes(student, rng, oracle):
    """Losses, rates, validations and weights, step by step, and each step's random windows."""
    config = {"steps": 5, "batch_size": 2, "micro_batches": 2, "peak": 0.02, "floor": 0.005}
    config |= {"warmup": 2, "weight_decay": 0.3, "clip": 0.2, "evaluate_batches": 2}
    model = draw_model(rng, **TINY)
    every = {"evaluate_every": 2, "clip": 50.0, "micro_batches": 1}
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
    sizes = {"steps": 3, "batch_size": 3, "micro_batches": 2, "seed": 7}
    data = draw_tokens(rng, TINY["vocabulary"], 40)
    training_cases.check_windows_read(student, oracle, model, data, **sizes)


@weight(1)
@number("7.6")
def test_train_starts_from_its_seed_drops_out_and_is_not_disturbed_by_validation(
    student, rng, oracle
):
    """The same seed gives the same run; validations change nothing; odd losses name the step."""
    training_cases.check_modes(student, rng, 3, 5)
    training_cases.check_validation_apart(student, rng, 4, 3)
    training_cases.check_autocast_of_train(student, rng, 4)
    training_cases.check_train_refused(student, rng)


@weight(1)
@number("7.6")
def test_a_checkpoint_brings_everything_back(student, rng):
    """Weights, optimiser, step, generator and dropout's random state, in a file of safetensors."""
    checkpoint_cases.check_round_trip(student, rng, 5, 7)
    checkpoint_cases.check_round_trip(student, rng, 8, 123, layers=2, width=6)


@weight(1)
@number("7.6")
def test_a_checkpoint_that_can_not_be_used_changes_nothing(student, rng):
    """Missing, cut off, or of another model: a ValueError with the path in it."""
    checkpoint_cases.check_refused_files(student, rng, 4)


@weight(1)
@number("7.6")
def test_a_run_that_is_stopped_and_resumed_comes_to_the_same_numbers(student, rng):
    """Bit for bit, with dropout; files come when they should; at its end there is nothing to do."""
    checkpoint_cases.check_resume(student, rng, steps=6, stop=3, seed=5)
    checkpoint_cases.check_saves(student, rng, 2)


@weight(1)
@number("7.6")
@tags("training")
def test_a_gpt_that_is_trained_from_scratch_learns_to_spell(student, rng, oracle):
    """A small model on the plays: it starts near ln(vocabulary), and ends below a band."""
    plays = load_shakespeare("plays")
    vocabulary = text_cases.vocabulary_of(plays.train)
    settings = training_cases.PLAYS | {"vocabulary": len(vocabulary)}
    seed_torch(student, int(rng.integers(2**31)))
    module = new_module(student.model, "GPT", **settings)
    data = training_cases.encoded(plays.train[: training_cases.READ], vocabulary)
    config = student.training.TrainConfig(**training_cases.PLAYS_RUN, seed=int(rng.integers(1000)))
    history = student.training.train(module, data, config)
    training_cases.read_history(history, range(1, training_cases.PLAYS_RUN["steps"] + 1), [])
    even = math.log(len(vocabulary))
    check(
        abs(history["loss"][0] - even) < training_cases.FIRST_BAND,
        "The first loss of a training from scratch is not near ln(vocabulary).",
        f"It is {history['loss'][0]:.3f} instead of about {even:.3f}.",
    )
    held_out = training_cases.encoded(plays.validation, vocabulary)
    windows = held_out.unfold(0, settings["context"] + 1, 1)
    batch = windows[torch.from_numpy(rng.integers(len(windows), size=500))]
    loss = oracle.loss(settings, parameters_of(module), batch[:, :-1], batch[:, 1:])
    band = training_cases.PLAYS_BAND
    check(
        loss < band,
        f"After a short training, the loss on other plays must be below {band}.",
        f"It is {loss:.3f}.",
        "If all other tests pass: are GPTConfig and TrainConfig as they were given?",
    )


# Exercise 7.7


@weight(1)
@number("7.7")
def test_next_probabilities_are_softmax_then_top_k_then_top_p(student, rng):
    """Temperature first, then the likeliest, then as many as reach top_p; scaled to a sum of 1."""
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
        case = f"by hand, {settings}", logits, torch.tensor(right, dtype=torch.float64), settings
        check_probabilities(next_probabilities, case)
    heats, counts = (1.0, 0.5, 3.0, 0.0, 0.01), (1, 3, 6, 7, 8, 100)
    chances, both = draw_chances(rng, 7), {"temperature": 2.0, "top_k": 4}
    for case in sampling_cases.probability_cases(chances, heats, counts, **both):
        check_probabilities(next_probabilities, case)
    single = sampling_cases.single_case(draw_chances(rng, 5), 0.7, 4)
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
    """Odd contexts too, and a context of 1; the window that is handed in stays."""
    next_window = student.sampling.next_window
    for window, context, expected in (
        ([1, 2, 3], 4, [1, 2, 3, 9]),
        ([1, 2, 3, 4], 4, [3, 4, 9]),
        ([1, 2, 3, 4, 5], 5, [4, 5, 9]),
        ([], 4, [9]),
        ([7], 1, [9]),
    ):
        found = next_window(window, 9, context)
        sampling_cases.compare_window(found, expected, len(window), context)
    for context in (1, 2, 3, 6, 7):
        tokens = rng.integers(50, size=3 * context + 2).tolist()
        sampling_cases.check_windows(next_window, context, tokens)


@weight(1)
@number("7.7")
def test_generate_takes_the_likeliest_token_at_temperature_0(student, rng, oracle):
    """Past the context too, and after a prompt that is longer; the model stays in its mode."""
    several = {"heads": 8}, {}, {"layers": 3}, {"context": 5}, {"context": 1}, {"vocabulary": 20}
    for settings in several:
        model, generate = draw_model(rng, **settings), student.sampling.generate
        vocabulary = model.settings["vocabulary"]
        prompts = [draw_tokens(rng, vocabulary, size) for size in (1, 3, 6, 15)]
        module = model.on(student.model, dropout=0.5)
        sampling_cases.check_greedy(generate, module, model, prompts, length=40, oracle=oracle)


@weight(1)
@number("7.7")
def test_generate_draws_with_the_probabilities_of_the_next_token(student, rng, oracle):
    """Long texts show them; right draws are off by this much with a chance below 1e-6."""
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
def test_generate_draws_from_its_generator_alone_and_refuses_what_makes_no_sense(student, rng):
    """The same generator gives the same tokens; a length of 0 is the prompt; errors in words."""
    model, generate = draw_model(rng), student.sampling.generate
    sampling_cases.check_generator_alone(student, generate, model, 5)
    sampling_cases.check_nothing_to_write(generate, model.on(student.model), model, rng)
    sampling_cases.check_generate_refused(generate, model.on(student.model), 7)


# Exercise 7.8


@weight(1)
@number("7.8")
def test_the_cache_holds_keys_and_values_of_each_layer(student, rng):
    """extend gives all so far, what it gave before stays, and there is room for the context."""
    for pieces, n, dtype, settings in (
        ((3, 1, 2), 2, torch.float64, {"layers": 2}),
        ((1, 1), 1, torch.float64, {"layers": 3, "context": 4}),
        ((4,), 2, torch.float32, {"layers": 1, "heads": 4}),
    ):
        model = draw_model(rng, **settings)
        cache = cache_cases.new_cache(student, model)
        total, layers = sum(pieces), range(settings["layers"])
        whole = [
            cache_cases.draw_keys_and_values(rng, model, n, total, dtype=dtype) for _ in layers
        ]
        cache_cases.check_cache(cache, whole, pieces)
        room = model.settings["context"] - total
        more = cache_cases.draw_keys_and_values(rng, model, n, room + 1, dtype=dtype)
        check_refused("more tokens than the context", cache.extend, 0, *more)
        first = [values[:, :, : pieces[0]] for values in whole[0]]
        check_unchanged("extend", cache_cases.new_cache(student, model).extend, 0, *first)


@weight(1)
@number("7.8")
def test_forward_cached_in_pieces_is_the_model_at_once(student, rng, oracle):
    """The scores of each piece are those of all tokens so far, in float32 too."""
    for n, pieces in ((2, (3, 1, 2)), (1, (1, 1, 1, 1)), (3, (6,)), (2, (1, 4))):
        cache_cases.check_pieces(student, oracle, rng, draw_model(rng), n=n, pieces=pieces)
    single = draw_model(rng, torch.float32)
    cache_cases.check_pieces(student, oracle, rng, single, n=2, pieces=(2, 3))


@weight(1)
@number("7.8")
def test_generate_cached_gives_the_tokens_of_generate(student, rng, oracle):
    """For the same generator, past the context too; it refuses what generate refuses."""
    generate_cached = student.sampling.generate_cached
    for settings in ({}, {"context": 5, "layers": 1}, {"context": 1}):
        model = draw_model(rng, **settings)
        prompts = [draw_tokens(rng, model.settings["vocabulary"], size) for size in (1, 3, 13)]
        cache_cases.check_same_tokens(student, oracle, model, prompts, length=17, seed=6)
    sampling_cases.check_nothing_to_write(generate_cached, model.on(student.model), model, rng)
    sampling_cases.check_generator_alone(student, generate_cached, draw_model(rng), 5)
    sampling_cases.check_generate_refused(generate_cached, draw_model(rng).on(student.model), 7)


@weight(1)
@number("7.8")
def test_only_new_tokens_go_through_the_layers(student, rng):
    """Each token once, but for the windows that are begun anew when the context is full."""
    model, generate = draw_model(rng, context=8), student.sampling.generate_cached
    module, cache = model.on(student.model), cache_cases.new_cache(student, model)
    for t in (3, 1, 2):
        tokens = draw_tokens(rng, 7, 2, t)
        forward = student.sampling.forward_cached
        cache_cases.check_new_tokens_alone(forward, module, tokens, cache)
    for size, length in ((1, 7), (3, 20), (12, 9)):
        module, prompt = model.on(student.model), draw_tokens(rng, 7, size)
        cache_cases.check_each_token_once(generate, module, model, prompt, length=length)


@weight(1)
@number("7.8")
@tags("timing")
def test_generate_cached_takes_at_most_half_of_the_time(student, rng, oracle):
    """256 tokens at a context of 256, beside PyTorch's layers without a cache."""
    cache_cases.check_cache_speed(student, oracle, rng)


# Exercise 7.9


@weight(1)
@number("7.9")
def test_summaries_speeds_and_flops_are_right(student, rng, oracle):
    """Percentiles are NumPy's, FLOPs those that PyTorch counts; mfu and tokens per second."""
    summarise = student.timing.summarise
    for times in ([3.0, 1.0, 2.0], *timing_cases.draw_times(rng)):
        timing_cases.compare_summary(summarise(list(times)), times, oracle)
    check_refused("no times", summarise, [])
    timing_cases.check_speeds(student.timing, rng)
    large = {"vocabulary": 70, "context": 64, "layers": 4, "heads": 4, "width": 128}
    for settings in (SMALL, large):
        config = student.model.GPTConfig(**settings)
        timing_cases.check_flops(student.timing.flops_per_token, config, settings, oracle)


@weight(1)
@number("7.9")
def test_time_ms_times_each_call_after_the_warm_up(student, oracle):
    """Counts of calls, and times between those of the calls and those of the judge's clock."""
    time_ms = student.timing.time_ms
    for warm, delays in (
        ([60.0, 40.0], [4.0, 12.0, 5.0, 8.0, 6.0]),
        ([], [10.0]),
        ([80.0], [3.0, 3.0]),
    ):
        timing_cases.check_paced(time_ms, paced_function(student, warm + delays), warm, delays)
    function = paced_function(student, [0.2] * 40)
    timing = check_object(time_ms(function), "what time_ms returns", "a Timing")
    assert_equal(timing.n, 20, what="n, if nothing is said")
    assert_equal(function.calls, 23, what="the number of calls, if nothing is said")
    timing_cases.check_time_refused(time_ms, paced_function(student, [0.1] * 40))
    sizes = [size * MEGABYTE for size in (3, 8, 1)]
    function = allocating_function(student, sizes, "cpu")
    timing_cases.check_peak(student.timing.peak_memory, function, sizes)


@weight(1)
@number("7.9")
def test_attention_by_hand_needs_the_square_of_the_length(student, rng, oracle):
    """It is F.scaled_dot_product_attention; the table shows bytes and times of both."""
    for shape, dtype in (
        ((2, 3, 5, 4), torch.float64),
        ((1, 1, 1, 3), torch.float64),
        ((1, 2, 7, 1), torch.float64),
        ((2, 2, 4, 3), torch.float32),
    ):
        *inputs, upstream = (draw_vectors(rng, *shape, dtype=dtype) for _ in range(4))
        timing_cases.check_by_hand(student.timing.attention_by_hand, inputs, upstream, oracle)
    timing_cases.check_table(student.timing.scaling_table, [256, 1024, 512], 2, 16)
    timing_cases.check_table_refused(student.timing.scaling_table)


@weight(1)
@number("7.9")
@tags("gpu")
def test_time_ms_on_a_gpu_is_the_time_of_the_gpus_work(student):
    """A large product takes as long by events as by a clock that waits for it."""
    timing_cases.check_time_on_gpu(student.timing.time_ms, product_function(student, 4096, "cuda"))


@weight(1)
@number("7.9")
@tags("gpu")
def test_peak_memory_on_a_gpu_is_the_most_that_was_alive(student):
    """Tensors that are made one after another: the largest counts."""
    sizes = [size * MEGABYTE for size in (6, 20, 2)]
    function = allocating_function(student, sizes, "cuda")
    timing_cases.check_peak(student.timing.peak_memory, function, sizes, "cuda")


# Exercise 7.10


@weight(1)
@number("7.10")
def test_the_trained_model_can_be_read_and_is_within_the_budget(artifact):
    """checkpoint.safetensors and config.json as export_model writes them; 11 million parameters."""
    read_model(artifact(CHECKPOINT), artifact(CONFIG))


@weight(1)
@number("7.10")
def test_the_trained_model_knows_which_characters_follow(artifact, rng, oracle):
    """Its loss on plays that are kept for validation is below the first band."""
    check_trained(oracle, artifact, rng, "first")


@weight(1)
@number("7.10")
def test_the_trained_model_knows_words(artifact, rng, oracle):
    """Its loss on plays that are kept for validation is below the second band."""
    check_trained(oracle, artifact, rng, "second")


# Exercises 7.11 and 7.12: the lab


@weight(1)
@number("7.11")
def test_q1_the_temperature_that_halves_a_ratio_of_4_is_right(lab):
    """Lab, question 1: 4 to the power of 1 / temperature is 2."""
    check_number(lab, "q1_temperature", math.log(4) / math.log(2), tolerance=0.01)


@weight(1)
@number("7.11")
def test_q2_the_number_of_choices_is_right(lab):
    """Lab, question 2: e to the power of the entropy."""
    chances = (0.60, 0.15, 0.09, 0.06, 0.04, 0.03, 0.02, 0.01)
    entropy = -sum(chance * math.log(chance) for chance in chances)
    check_number(lab, "q2_choices", math.exp(entropy), tolerance=0.015)


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
def test_q8_halving_what_hangs_on_the_weights_takes_the_right_factor(lab):
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
