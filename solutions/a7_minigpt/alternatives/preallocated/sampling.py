"""Whole arrays: a cache with room for a whole context from the start."""


def next_probabilities(
    logits: Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Tensor:
    """The probabilities from which the next token is drawn. Their sum is 1."""
    if not (temperature >= 0 and (top_k is None or top_k >= 1)):
        raise ValueError("temperature must be at least 0, and top_k at least 1")
    if not (top_p is None or 0 < top_p <= 1):
        raise ValueError("top_p must be in (0, 1]")
    if temperature == 0:
        return torch.zeros_like(logits).index_fill(0, logits.argmax(), 1)
    p = torch.softmax((logits - logits.max()) / temperature, dim=0)
    if top_k is not None:
        best = p.topk(min(top_k, len(p))).indices
        p = torch.zeros_like(p).index_copy(0, best, p[best])
        p /= p.sum()
    if top_p is not None:
        order = p.argsort(descending=True)
        count = int((p[order].cumsum(0) < top_p).sum()) + 1
        p = p.index_fill(0, order[count:], 0)
        p /= p.sum()
    return p


class KVCache:
    def __init__(self, config: GPTConfig) -> None:
        self.config = config
        self.buffers: list[Tensor | None] = [None] * config.num_layers
        self.filled = [0] * config.num_layers

    @property
    def length(self) -> int:
        """How many tokens the last layer holds keys and values of."""
        return self.filled[-1]

    def extend(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Append the keys and values of t more tokens to a layer; return all that it holds."""
        begin, end = self.filled[layer], self.filled[layer] + k.shape[2]
        if end > self.config.context_length:
            raise ValueError(
                f"{end} tokens don't fit into a context of {self.config.context_length}"
            )
        if self.buffers[layer] is None:
            n, num_heads, _, d_head = k.shape
            self.buffers[layer] = k.new_empty(2, n, num_heads, self.config.context_length, d_head)
        buffer = self.buffers[layer]
        buffer[0, :, :, begin:end], buffer[1, :, :, begin:end] = k, v
        self.filled[layer] = end
        return buffer[0, :, :, :end], buffer[1, :, :, :end]


def generate_cached(
    model: GPT,
    prompt: Tensor,
    length: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """What generate gives for the same generator, but each token goes through the model once."""
    check_prompt(prompt, length)
    device, context_length = model.token_embedding.weight.device, model.config.context_length
    tokens = prompt.new_empty(len(prompt) + length)
    tokens[: len(prompt)] = prompt
    window, cache = first_window(prompt, context_length), KVCache(model.config)
    fresh = window
    with evaluating(model):
        for index in range(len(prompt), len(tokens)):
            logits = forward_cached(model, torch.tensor([fresh], device=device), cache)[0, -1]
            token = draw(next_probabilities(logits, temperature, top_k, top_p), generator)
            tokens[index] = token
            if len(window) == context_length:
                cache = KVCache(model.config)
            window = next_window(window, token, context_length)
            fresh = window[cache.length :]
    return tokens
