"""The hidden tests of assignment 7: the public tests' properties on other shapes and seeds."""

from functools import partial

import torch
from gradescope_utils.autograder_utils.decorators import number, weight

from common.labs.answer_checks import check_number
from common.testing.checks import check_refused, check_unchanged
from common.testing.compare import assert_close, assert_equal, check
from common.testing.dropout import check_levels, check_tensor
from common.testing.remote.operations import paced_function
from common.testing.remote.scratch_files import scratch_bytes, scratch_path, write_scratch
from common.testing.remote.torch_modules import seed_torch
from common.testing.remote.torch_objects import (
    gradient_descent,
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
from tests.a7_minigpt.artifact_cases import check_trained
from tests.a7_minigpt.cases import (
    LOGIT_AXES,
    SMALL,
    SMALL_BLOCK,
    check_calls_stay_apart,
    check_evaluation,
    check_gradients,
    check_ids,
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
from tests.a7_minigpt.sampling_cases import CHAIN, check_probabilities, draw_ranked_tokens
from tests.a7_minigpt.text_cases import PAIRS, draw_text, starts_of
from tests.a7_minigpt.training_cases import TINY

# Exercise 7.1


@weight(1)
@number("7.1")
def test_other_texts_are_encoded_and_decoded(student, rng):
    """Ids and texts of other characters; unknown characters and ids are rejected."""
    new = student.tokenizer.CharTokenizer
    for _ in range(4):
        text = text_cases.draw_characters(rng, 60)
        characters = text_cases.check_tokenizer(new.from_text(text), text)
        text_cases.check_encoded(new(characters).encode(text), characters, text, "the ids")
        ids = rng.integers(len(characters), size=30).tolist()
        text_cases.check_decoded(new(characters).decode, characters, ids)
        known, unknown = characters[1:], characters[0]
        text_cases.check_unknown(new(known).encode, known[0] + unknown + known[0], unknown)
    text_cases.check_encoded(new(characters).encode(""), characters, "", "the ids of an empty text")
    check_refused("an empty text", new.from_text, "")


@weight(1)
@number("7.1")
def test_other_characters_are_saved_and_loaded(student, rng):
    """JSON in UTF-8 of other characters; other files are rejected."""
    path = scratch_path(student, "characters.json")
    for _ in range(3):
        text = text_cases.draw_characters(rng, 40)
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
def test_batches_of_other_sizes_are_windows_of_the_text(student, rng):
    """Other lengths and sizes, one window, and texts without any; from the generator alone."""
    get_batch = student.training.get_batch
    for batch_size, context_length in ((3, 6), (6, 1), (1, 9), (4, 4)):
        windows = 1 if context_length == 4 else int(rng.integers(2, 40))
        data, generator = draw_text(rng, windows + context_length), torch_generator(student, 3)
        for given in (data, spread_out(data)):
            batch = get_batch(given, batch_size, context_length, generator)
            starts_of(data, batch, batch_size, context_length)
        check_unchanged("get_batch", get_batch, data, batch_size, context_length, generator)
    data, drawn = draw_text(rng, 700), []
    for own_seed, seed in ((1, 5), (2, 5), (2, 6)):
        seed_torch(student, own_seed)
        generator = torch_generator(student, seed)
        batches = [get_batch(data, 8, 4, generator) for _ in range(2)]
        drawn.append([starts_of(data, batch, 8, 4) for batch in batches])
    text_cases.compare_draws(*drawn)
    text_cases.check_batch_refused(get_batch, torch_generator(student, 0))


@weight(1)
@number("7.2")
def test_windows_of_other_texts_are_equally_likely(student, rng):
    """The first and the last one too, and each row independently of the others."""
    get_batch = student.training.get_batch
    for windows, context_length in ((5, 4), (3, 1)):
        generator = torch_generator(student, int(rng.integers(1000)))
        data = draw_text(rng, windows + context_length)
        batch = get_batch(data, 2 * PAIRS, context_length, generator)
        text_cases.check_uniform(data, batch, context_length)
    generator, data = torch_generator(student, int(rng.integers(1000))), draw_text(rng, 8 + 3)
    text_cases.check_repeats(data, [get_batch(data, 8, 3, generator) for _ in range(10)])


# Exercise 7.3


@weight(1)
@number("7.3")
def test_attention_is_right_for_other_sizes(student, rng, oracle):
    """Names, outputs and gradients of other shapes; large numbers; other vectors are rejected."""
    for n, t, d_model, num_heads in ((3, 2, 8, 2), (1, 6, 6, 3), (2, 1, 5, 5), (4, 3, 4, 1)):
        settings = SMALL_BLOCK | {"d_model": d_model, "num_heads": num_heads}
        block_cases.check_names(student.model, "CausalSelfAttention", settings)
        block = draw_block(rng, "CausalSelfAttention", **settings)
        x = draw_vectors(rng, n, t, d_model)
        drawn = draw_vjp(rng, oracle, block, x)
        check_gradients(block.on(student.model), drawn, "other sizes")
    block = draw_block(rng, "CausalSelfAttention")
    x = 1e3 * draw_vectors(rng, 2, 4, SMALL["d_model"])
    compare(block.on(student.model)(x), expected_output(oracle, block, x), "x near 1000")
    module = draw_block(rng, "CausalSelfAttention").on(student.model)
    x = draw_vectors(rng, 2, 3, SMALL["d_model"] + 1)
    block_cases.check_vectors_refused(module, "CausalSelfAttention", x)


@weight(1)
@number("7.3")
def test_project_and_attend_are_right_for_other_sizes(student, rng, oracle):
    """Queries, keys and values by head, and queries of the last positions."""
    double, single = torch.float64, torch.float32
    for n, t, d_model, num_heads, dtype in ((3, 2, 9, 3, double), (1, 5, 4, 2, single)):
        block = draw_block(rng, "CausalSelfAttention", dtype, d_model=d_model, num_heads=num_heads)
        x = draw_vectors(rng, n, t, d_model, dtype=dtype)
        block_cases.check_project(block.on(student.model).project, block, x)
    for n, queries, keys, num_heads, dtype in (
        (3, 3, 3, 2, double),
        (2, 2, 6, 4, double),
        (1, 1, 5, 1, double),
        (2, 4, 5, 2, double),
        (2, 2, 4, 2, single),
    ):
        block = draw_block(rng, "CausalSelfAttention", dtype, d_model=8, num_heads=num_heads)
        shapes = [(n, num_heads, t, 8 // num_heads) for t in (queries, keys, keys)]
        inputs = [draw_vectors(rng, *shape, dtype=dtype) for shape in shapes]
        drawn = draw_vjp(rng, oracle, block, *inputs, part=".attend")
        attend = block.on(student.model).attend
        block_cases.check_attend(attend, drawn, f"{queries} queries, {keys} keys")


@weight(1)
@number("7.3")
def test_mlp_is_right_for_other_sizes(student, rng, oracle):
    """Names, outputs and gradients of other shapes; other vectors are rejected."""
    for n, t, d_model in ((3, 2, 5), (1, 1, 7), (2, 5, 2)):
        settings = SMALL_BLOCK | {"d_model": d_model, "num_heads": 1}
        block_cases.check_names(student.model, "MLP", settings)
        block = draw_block(rng, "MLP", d_model=d_model, num_heads=1)
        x = 3 * draw_vectors(rng, n, t, d_model)
        drawn = draw_vjp(rng, oracle, block, x)
        check_gradients(block.on(student.model), drawn, "other sizes")
    block, x = draw_block(rng, "MLP"), 1e4 * draw_vectors(rng, 2, 4, SMALL["d_model"])
    compare(block.on(student.model)(x), expected_output(oracle, block, x), "x near 10000")
    module = draw_block(rng, "MLP").on(student.model)
    block_cases.check_vectors_refused(module, "MLP", draw_vectors(rng, 2, 3, SMALL["d_model"] + 1))


@weight(1)
@number("7.3")
def test_block_is_right_for_other_sizes(student, rng, oracle):
    """Names, outputs and gradients of other shapes; other vectors are rejected."""
    for n, t, d_model, num_heads in ((3, 2, 8, 4), (1, 5, 6, 1), (2, 1, 9, 3)):
        settings = SMALL_BLOCK | {"d_model": d_model, "num_heads": num_heads}
        block_cases.check_names(student.model, "Block", settings)
        block = draw_block(rng, "Block", **settings)
        x = 3 * draw_vectors(rng, n, t, d_model) - 1
        drawn = draw_vjp(rng, oracle, block, x)
        check_gradients(block.on(student.model), drawn, "other sizes")
    module = draw_block(rng, "Block").on(student.model)
    block_cases.check_vectors_refused(
        module, "Block", draw_vectors(rng, 2, 3, SMALL["d_model"] + 1)
    )


@weight(1)
@number("7.3")
def test_blocks_use_dropout_at_other_rates_and_keep_types(student, rng, oracle):
    """Dropout of other rates, in training mode only; float32, views, unchanged inputs."""
    for part, p, shape in (
        ("CausalSelfAttention", 0.45, (500, 1, 5)),
        ("MLP", 0.6, (40, 8, 8)),
        ("Block.attention", 0.15, (40, 8, 8)),
        ("Block.mlp", 0.15, (40, 8, 8)),
    ):
        block, levels, what = block_cases.draw_for_dropout(rng, part, shape[2], p)
        x = draw_vectors(rng, *shape)
        out = block.on(student.model, dropout=p)(x)
        check_tensor(out, shape)
        check_levels(out - x if block.kind == "Block" else out, levels, what)
    settings = {"d_model": 6, "num_heads": 3}
    for kind in ("CausalSelfAttention", "MLP", "Block"):
        x, second = draw_vectors(rng, 3, 2, 6), draw_vectors(rng, 2, 4, 6)
        block = draw_block(rng, kind, **settings)
        module, expected = block.on(student.model, dropout=0.5), expected_output(oracle, block, x)
        check_evaluation(module, kind, x, expected)
        single, floats = draw_block(rng, kind, torch.float32, **settings), x.float()
        drawn = draw_vjp(rng, oracle, single, floats)
        check_gradients(single.on(student.model), drawn, "float32")
        block, inputs = draw_block(rng, kind, **settings), (view_of(x), second)
        check_calls_stay_apart(block.on(student.model), oracle, block, inputs)


# Exercise 7.4


@weight(1)
@number("7.4")
def test_gpts_of_other_sizes_have_the_right_parameters(student, rng):
    """Names, shapes and initialization for other sizes; a first loss near ln(vocab_size)."""
    settings = {
        "vocab_size": 90,
        "context_length": 80,
        "num_layers": 3,
        "num_heads": 2,
        "d_model": 56,
    }
    model_cases.check_first_values(student.model, settings)
    for some in (settings, SMALL | {"num_layers": 3, "d_model": 10}):
        module = new_module(student.model, "GPT", **some)
        assert_equal(module.num_parameters(), count_parameters(some), what="num_parameters()")
    seed_torch(student, int(rng.integers(2**31)))
    module = new_module(student.model, "GPT", **NEW, vocab_size=120)
    batch = draw_batch(rng, 120, 16, NEW["context_length"])
    model_cases.check_first_loss(module(*batch), 120)


@weight(1)
@number("7.4")
def test_gpts_of_other_sizes_give_the_right_logits(student, rng, oracle):
    """Logits and gradients of other models, and the gradients of their losses."""
    for n, t, dtype, settings in (
        (3, 4, torch.float64, {"num_layers": 1}),
        (1, 7, torch.float64, {"context_length": 7, "num_heads": 4}),
        (2, 1, torch.float64, {"vocab_size": 4, "num_layers": 3, "d_model": 10}),
        (3, 2, torch.float32, {}),
    ):
        model, situation = draw_model(rng, dtype, **settings), "float32"
        vocab_size = model.settings["vocab_size"]
        if dtype == torch.float64:
            tokens, situation = draw_tokens(rng, vocab_size, n, t), "other sizes"
            drawn = draw_vjp(rng, oracle, model, tokens)
            check_gradients(model.on(student.model), drawn, situation)
        batch = draw_batch(rng, vocab_size, n, t)
        drawn = model_cases.draw_loss_vjp(rng, oracle, model, batch)
        model_cases.check_loss(model.on(student.model), drawn, situation)


@weight(1)
@number("7.4")
def test_tokens_change_nothing_before_them_in_other_models(student, rng, oracle):
    """Causality, and independent sequences, for other sizes."""
    model = draw_model(rng, vocab_size=9, context_length=7, num_layers=2, num_heads=3, d_model=6)
    module, tokens = model.on(student.model), draw_tokens(rng, 9, 3, 7)
    model_cases.check_causal(module, model, tokens, oracle=oracle, rng=rng)
    model_cases.check_rows_alone(model.on(student.model), model, draw_tokens(rng, 9, 5, 3), oracle)


@weight(1)
@number("7.4")
def test_embed_and_logits_are_right_for_other_sizes(student, rng, oracle):
    """Positions from start, the final norm, and one matrix for both ends."""
    model = draw_model(rng, vocab_size=10, context_length=9, d_model=6)
    module, tokens = model.on(student.model), draw_tokens(rng, 10, 2, 3)
    model_cases.check_tied(module, model, tokens, oracle)
    for n, t, start in ((3, 4, 0), (1, 2, 7), (2, 9, 0), (2, 3, 2)):
        tokens = draw_tokens(rng, 10, n, t)
        expected = expected_output(oracle, model, tokens, start, part=".embed")
        model_cases.check_embed(model.on(student.model).embed, tokens, start, expected)
    x = draw_vectors(rng, 3, 2, 6)
    expected = expected_output(oracle, model, x, part=".logits")
    module = model.on(student.model)
    assert_close(module.logits(x), expected, "logits", LOGIT_AXES)
    check_unchanged("logits", module.logits, x)
    model, tokens = draw_model(rng, torch.float32), draw_tokens(rng, 7, 2, 3)
    expected = expected_output(oracle, model, tokens, 1, part=".embed")
    model_cases.check_embed(model.on(student.model).embed, tokens, 1, expected)


@weight(1)
@number("7.4")
def test_gpts_use_dropout_at_other_rates_and_reject_bad_ids(student, rng, oracle):
    """Dropout of another rate; float32, views, unchanged inputs; a ValueError."""
    for where in ("embedding", "mlp"):
        module = model_cases.model_for_dropout(where, 8).on(student.model, dropout=0.45)
        model_cases.check_dropout(module(torch.full((15, 8), WIDE)), (15, 8), where, 0.45)
    tokens, second = draw_tokens(rng, 7, 3, 6), draw_tokens(rng, 7, 1, 2)
    model = draw_model(rng, num_layers=3)
    module = model.on(student.model, dropout=0.5)
    check_evaluation(module, "GPT", tokens, expected_output(oracle, model, tokens))
    single = draw_model(rng, torch.float32, num_layers=1)
    drawn = draw_vjp(rng, oracle, single, tokens)
    check_gradients(single.on(student.model), drawn, "float32")
    model, inputs = draw_model(rng), (view_of(tokens), second)
    check_calls_stay_apart(model.on(student.model), oracle, model, inputs)
    model = draw_model(rng, vocab_size=7, context_length=5)
    model_cases.check_ids_refused(model.on(student.model), rng)


# Exercise 7.5


@weight(1)
@number("7.5")
def test_other_schedules_are_right(student, rng, oracle):
    """Other values of max_lr, min_lr, warmup and total."""
    learning_rate_at = student.training.learning_rate_at
    for _ in range(4):
        warmup = int(rng.integers(1, 40))
        total = warmup + int(rng.integers(2, 100))
        max_lr = float(rng.uniform(0.1, 2))
        min_lr = float(rng.uniform(0, max_lr))
        steps = {1, warmup, warmup + 1, (warmup + total) // 2, total - 1, total, total + 5}
        schedule = (max_lr, warmup, total, min_lr)
        optimizer_cases.check_rates(learning_rate_at, schedule, sorted(steps), oracle)
    optimizer_cases.check_rates(learning_rate_at, (0.5, 0, 9, 0.1), range(1, 12), oracle)
    optimizer_cases.check_rates_refused(learning_rate_at)


@weight(1)
@number("7.5")
def test_other_optimizers_are_adamw_with_decay_for_matrices(student, rng, oracle):
    """Other rates, decays and betas, and gradients of 0."""
    rate, decay = float(rng.uniform(0.05, 0.2)), float(rng.uniform(0.2, 1))
    configure_optimizer = student.training.configure_optimizer
    model = draw_model(rng, num_layers=1)
    module = model.on(student.model)
    optimizer = configure_optimizer(module, rate, decay)
    optimizer_cases.check_decay(optimizer, module, model, rate * decay)
    for kind, betas in (("GPT", {}), ("MLP", {"betas": (0.7, 0.9)})):
        model = draw_block(rng, kind)
        module = model.on(student.model)
        optimizer = configure_optimizer(module, rate, decay, **betas)
        right = oracle.Optimizer(model.parameters, rate, decay, **betas)
        optimizer_cases.check_adamw(optimizer, module, model, right=right, rng=rng)


@weight(1)
@number("7.5")
def test_other_batches_give_the_right_step(student, rng, oracle):
    """One batch, clipped or not; leftover gradients; steps of AdamW."""
    model, train_step = draw_model(rng, num_layers=1, d_model=6), student.training.train_step
    for share, situation in ((5.0, "below max_norm"), (0.2, "above max_norm")):
        batches = draw_batches(rng, model, 1, (2, 6))
        max_norm, rate, right = optimizer_cases.plan_step(oracle, model, batches, share)
        module = model.on(student.model)
        loss = train_step(module, gradient_descent(module, rate), batches, max_norm)
        optimizer_cases.compare_step(loss, module, right, situation)
    batches = draw_batches(rng, model, 1, (1, 2))
    wanted = optimizer_cases.expected_default_step(oracle, model, batches)
    module = model.on(student.model)
    train_step(module, gradient_descent(module, 0.5), batches)
    optimizer_cases.compare_parameters(module, wanted, "max_norm not given", CLIPPED)
    batches = draw_batches(rng, model, 1, (3, 4))
    module = model.on(student.model)
    optimizer_cases.check_leftovers(train_step, module, model, batches, oracle=oracle, rng=rng)
    optimizer_cases.check_adam_steps(student, oracle, rng, model, max_norm=0.7)


@weight(1)
@number("7.5")
def test_other_numbers_of_batches_are_one_large_batch(student, rng, oracle):
    """Update and loss of several batches, clipped together."""
    model, train_step = draw_model(rng, num_heads=4), student.training.train_step
    for count, n, t in ((3, 2, 5), (5, 1, 3)):
        for share in (2.0, 0.3):
            batches = draw_batches(rng, model, count, (n, t))
            max_norm, rate, right = optimizer_cases.plan_step(oracle, model, batches, share)
            module = model.on(student.model)
            views = [tuple(map(view_of, batch)) for batch in batches]
            loss = train_step(module, gradient_descent(module, rate), views, max_norm)
            optimizer_cases.compare_step(loss, module, right, "several batches")
    module = model.on(student.model)
    optimizer, batches = gradient_descent(module, 0.1), draw_batches(rng, model, 1, (1, 1))
    check(train_step(module, optimizer, batches) is not None, "No loss.")
    check_refused("no batches", train_step, module, optimizer, [])


@weight(1)
@number("7.5")
def test_autocast_is_right_for_other_sizes(student, rng, oracle):
    """bfloat16 changes loss and gradients by a little; parameters stay float32."""
    model = draw_model(
        rng, torch.float32, vocab_size=30, context_length=10, d_model=24, num_heads=4
    )
    batches = draw_batches(rng, model, 2, (2, 10))
    right = optimizer_cases.expected_step(oracle, model, batches, rate=1.0)
    module = model.on(student.model)
    optimizer = gradient_descent(module, 1.0)
    loss = student.training.train_step(module, optimizer, batches, NO_CLIP, True)
    optimizer_cases.check_autocast(loss, module, model, right)


# Exercise 7.6


@weight(1)
@number("7.6")
def test_estimate_loss_is_right_for_other_texts(student, rng, oracle):
    """Other lengths and sizes; the model doesn't change."""
    seed = int(rng.integers(1000))
    for length, batch_size, batches in ((8, 1, 4), (60, 4, 3)):
        model, data = draw_model(rng, context_length=5, num_layers=1), draw_tokens(rng, 7, length)
        sizes = {"batch_size": batch_size, "batches": batches}
        training_cases.check_estimate(student, oracle, model, data, **sizes, seed=seed)
    module, generator = (
        draw_model(rng, context_length=3).on(student.model),
        torch_generator(student, 0),
    )
    data = draw_tokens(rng, 7, 4)
    training_cases.check_estimate_refused(student.training.estimate_loss, module, data, generator)


@weight(1)
@number("7.6")
def test_other_training_runs_take_the_right_steps(student, rng, oracle):
    """Losses, rates, validations and weights of other runs, and their windows."""
    # Every step is clipped: gradients that are too large cost points in 7.5 and not again here.
    config = {"steps": 6, "batch_size": 3, "grad_accum_steps": 3, "max_lr": 0.03, "min_lr": 0.0}
    config |= {"warmup": 1, "weight_decay": 0.1, "max_norm": 0.05, "evaluate_batches": 1}
    model = draw_model(rng, **TINY | {"context_length": 5})
    stopped = {"stop": 5, "evaluate_every": 4, "max_norm": 50.0, "grad_accum_steps": 1}
    for situation, changes, validations in (
        ("other settings", {"evaluate_every": 3}, [3, 6]),
        ("other settings, stopped early", stopped, [4, 5]),
    ):
        # Two texts of a single window each: all batches are the same, whatever is drawn.
        given, texts = config | changes, draw_batch(rng, 5, 6)
        right = training_cases.expected_run(oracle, model, texts, given, validations=validations)
        module, made = model.on(student.model), student.training.TrainConfig(**given)
        history = student.training.train(module, spread_out(texts[0]), made, texts[1])
        training_cases.compare_run(history, module, right, situation)
    sizes = {"steps": 4, "batch_size": 2, "grad_accum_steps": 3, "seed": int(rng.integers(1000))}
    data = draw_tokens(rng, TINY["vocab_size"], 40)
    training_cases.check_windows_read(student, oracle, model, data, **sizes)


@weight(1)
@number("7.6")
def test_other_training_runs_repeat_and_are_not_affected_by_validation(student, rng, oracle):
    """The same seed gives the same run; validations change nothing; NaN errors name the step."""
    seed = int(rng.integers(1000))
    training_cases.check_modes(student, rng, 4, seed)
    training_cases.check_validation_apart(student, rng, 3, seed)
    training_cases.check_autocast_of_train(student, rng, seed)
    training_cases.check_train_refused(student, rng)


@weight(1)
@number("7.6")
def test_other_checkpoints_restore_everything_or_change_nothing(student, rng):
    """Other models and steps; unusable files."""
    seed = int(rng.integers(1000))
    step = int(rng.integers(2, 10**6))
    checkpoint_cases.check_round_trip(student, rng, seed, step, context_length=5, num_heads=1)
    checkpoint_cases.check_refused_files(student, rng, seed)


@weight(1)
@number("7.6")
def test_other_resumed_runs_give_the_same_numbers(student, rng):
    """Stopped at another step, bit for bit; files are written when they are due."""
    seed = int(rng.integers(1000))
    checkpoint_cases.check_resume(student, rng, steps=7, stop=4, seed=seed, num_layers=2)
    checkpoint_cases.check_resume(student, rng, steps=5, stop=1, seed=seed + 1)
    checkpoint_cases.check_saves(student, rng, seed)


# Exercise 7.7


@weight(1)
@number("7.7")
def test_next_probabilities_are_right_for_other_logits(student, rng):
    """Other temperatures, top_k and top_p, alone and together."""
    next_probabilities = student.sampling.next_probabilities
    ranked, temperature = draw_ranked_tokens(rng, 9), float(rng.uniform(0.3, 3))
    heats, counts = (temperature, 0.0), (1, 4, 8, 20)
    both = {"temperature": temperature, "top_k": 5}
    for case in sampling_cases.probability_cases(ranked, heats, counts, **both):
        check_probabilities(next_probabilities, case)
    single = sampling_cases.single_case(draw_ranked_tokens(rng, 6), 1.4, 3)
    check_probabilities(next_probabilities, single)
    sampling_cases.check_probabilities_refused(next_probabilities, ranked.logits())


@weight(1)
@number("7.7")
def test_generate_is_greedy_for_other_models(student, rng, oracle):
    """At temperature 0, with other contexts, past them, and after long prompts."""
    for context_length in (1, 4, 7):
        tokens = rng.integers(90, size=3 * context_length + 1).tolist()
        sampling_cases.check_windows(student.sampling.next_window, context_length, tokens)
    for settings in (
        {"context_length": 4, "vocab_size": 12},
        {"context_length": 7, "num_layers": 1},
    ):
        model, generate = draw_model(rng, **settings), student.sampling.generate
        vocab_size = model.settings["vocab_size"]
        prompts = [draw_tokens(rng, vocab_size, size) for size in (2, 5, 11)]
        module = model.on(student.model, dropout=0.5)
        sampling_cases.check_greedy(generate, module, model, prompts, length=13, oracle=oracle)


@weight(1)
@number("7.7")
def test_generate_draws_with_the_right_probabilities_from_other_models(student, rng, oracle):
    """Long texts of other models show the probabilities of the next token."""
    for length, settings in ((1000, {"temperature": 1.3}), (500, {"top_k": 2})):
        given = {"generator": torch_generator(student, int(rng.integers(1000)))}
        model = draw_model(rng, **CHAIN)
        module, prompt = model.on(student.model), torch.tensor([0])
        tokens = student.sampling.generate(module, prompt, length, **settings, **given)
        check_ids(tokens, (length + 1,), 3, "What generate returns")
        next_probabilities = partial(student.sampling.next_probabilities, **settings)
        sampling_cases.check_draws(tokens, model, next_probabilities, oracle)


@weight(1)
@number("7.7")
def test_generate_draws_from_its_generator_alone_for_other_models(student, rng):
    """The same generator gives the same tokens; a length of 0; bad arguments."""
    model, generate = draw_model(rng, context_length=4, vocab_size=9), student.sampling.generate
    sampling_cases.check_generator_alone(student, generate, model, int(rng.integers(1000)))
    sampling_cases.check_nothing_to_write(generate, model.on(student.model), model, rng)
    sampling_cases.check_generate_refused(generate, model.on(student.model), 9)


# Exercise 7.8


@weight(1)
@number("7.8")
def test_caches_of_other_sizes_give_the_same_logits(student, rng, oracle):
    """Keys and values of each layer, and pieces of other lengths."""
    for pieces, n, dtype, settings in (
        ((2, 2, 1), 3, torch.float64, {"num_layers": 2, "context_length": 6}),
        ((1, 3), 2, torch.float32, {"num_layers": 1}),
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
    model = draw_model(rng, context_length=9, num_layers=3, num_heads=4)
    for n, pieces in ((3, (2, 5, 1)), (1, (8, 1)), (2, (1, 1, 3))):
        cache_cases.check_pieces(student, oracle, rng, model, n=n, pieces=pieces)


@weight(1)
@number("7.8")
def test_generate_cached_gives_the_tokens_of_generate_for_other_models(student, rng, oracle):
    """For the same generator, past other contexts; it rejects what generate rejects."""
    seed, generate_cached = int(rng.integers(1000)), student.sampling.generate_cached
    for settings in (
        {"context_length": 7, "vocab_size": 11},
        {"context_length": 4, "num_layers": 3},
    ):
        model = draw_model(rng, **settings)
        prompts = [draw_tokens(rng, model.settings["vocab_size"], size) for size in (2, 4, 9)]
        cache_cases.check_same_tokens(student, oracle, model, prompts, length=15, seed=seed)
    sampling_cases.check_nothing_to_write(generate_cached, model.on(student.model), model, rng)
    sampling_cases.check_generate_refused(generate_cached, model.on(student.model), 7)


@weight(1)
@number("7.8")
def test_only_new_tokens_go_through_the_layers_of_other_models(student, rng, oracle):
    """Each token once, except when a cut window is read again."""
    model, generate = (
        draw_model(rng, context_length=10, num_layers=3),
        student.sampling.generate_cached,
    )
    cache_cases.check_new_tokens_alone(student, oracle, rng, model, pieces=(1, 5, 1, 2))
    for size, length in ((2, 8), (7, 25), (25, 6)):
        module, prompt = model.on(student.model), draw_tokens(rng, 7, size)
        cache_cases.check_each_token_once(generate, module, model, prompt, length=length)


# Exercise 7.9


@weight(1)
@number("7.9")
def test_other_summaries_speeds_and_flops_are_right(student, rng, oracle):
    """Percentiles, tokens per second, mfu and FLOPs of other numbers."""
    for times in timing_cases.draw_times(rng):
        timing_cases.compare_summary(student.timing.summarize(list(times)), times, oracle)
    check_refused("no times", student.timing.summarize, [])
    timing_cases.check_speeds(student.timing, rng)
    for settings in (
        {"vocab_size": 13, "context_length": 10, "num_layers": 3, "num_heads": 3, "d_model": 12},
        {"vocab_size": 50, "context_length": 33, "num_layers": 1, "num_heads": 2, "d_model": 20},
    ):
        config = student.model.GPTConfig(**settings)
        timing_cases.check_flops(student.timing.flops_per_token, config, settings, oracle)


@weight(1)
@number("7.9")
def test_other_calls_are_timed_and_their_memory_is_counted(student, rng):
    """Counts and times of other calls; the peak of memory."""
    time_ms = student.timing.time_ms
    drawn = [round(float(delay), 1) for delay in rng.uniform(2, 12, size=6)]
    for warm, delays in (([90.0], drawn), ([30.0, 50.0, 20.0], [5.0])):
        timing_cases.check_paced(time_ms, rng, warm, delays)
    timing_cases.check_time_refused(time_ms, paced_function([0.1]))
    timing_cases.check_peak(student, rng)


@weight(1)
@number("7.9")
def test_naive_attention_and_its_table_are_right_for_other_sizes(student, rng, oracle):
    """It is F.scaled_dot_product_attention; bytes grow with the square of the length."""
    for shape, dtype in (
        ((1, 2, 6, 5), torch.float64),
        ((3, 1, 4, 2), torch.float64),
        ((2, 1, 3, 4), torch.float32),
    ):
        *inputs, upstream = (draw_vectors(rng, *shape, dtype=dtype) for _ in range(4))
        timing_cases.check_naive_attention(student.timing.naive_attention, inputs, upstream, oracle)
    timing_cases.check_table(student, [768, 384], 17, 8)
    timing_cases.check_table_refused(student.timing.scaling_table)


# Exercise 7.10


@weight(1)
@number("7.10")
def test_the_trained_model_is_below_the_first_threshold_on_other_windows(
    artifact, rng, oracle, leaderboard
):
    """Its loss on other windows of the validation plays is below the first threshold."""
    check_trained(oracle, artifact, rng, "first", leaderboard=leaderboard)


@weight(1)
@number("7.10")
def test_the_trained_model_is_below_the_second_threshold_on_other_windows(artifact, rng, oracle):
    """Its loss on other windows of the validation plays is below the second threshold."""
    check_trained(oracle, artifact, rng, "second")


# Exercises 7.11 and 7.12: the lab


@weight(1)
@number("7.11")
def test_q4_a_temperature_before_top_p_keeps_the_right_number_of_tokens(lab):
    """Lab, question 4: at temperature 1.5, the most likely tokens that reach 0.88 together."""
    cold = (0.60, 0.15, 0.09, 0.06, 0.04, 0.03, 0.02, 0.01)
    hot = [p ** (1 / 1.5) for p in cold]
    sums = [sum(hot[: kept + 1]) / sum(hot) for kept in range(len(hot))]
    check_number(lab, "q4_hot", 1 + sum(total < 0.88 for total in sums))


@weight(1)
@number("7.12")
def test_q7_the_context_at_which_attention_costs_as_much_as_the_linear_layers_is_right(lab):
    """Lab, question 7: 2 * 12 * d_model^2 FLOPs equal 2 * 2 * context_length * d_model."""
    check_number(lab, "q7_context", 6 * 128)


@weight(1)
@number("7.12")
def test_q8_the_number_of_parameters_for_a_budget_is_right(lab):
    """Lab, question 8: where the two falling parts of the loss balance; within 10 %."""
    # With D = C / (6 N), the derivative of the loss by N is 0 there.
    balance = (0.34 * 406.4 / (0.28 * 410.7)) ** (1 / (0.34 + 0.28))
    best = balance * (1e21 / 6) ** (0.28 / (0.34 + 0.28))
    check_number(lab, "q8_best", best, tolerance=best / 10)


@weight(1)
@number("7.12")
def test_q10_attention_grows_with_the_square_of_the_length(lab):
    """Lab, question 10: three times the length."""
    check_number(lab, "q10_times", (3000 / 1000) ** 2)
