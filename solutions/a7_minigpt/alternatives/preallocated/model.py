"""Whole arrays: queries, keys and values from three parts of one weight, a mask by comparison.

Dropout by functions, blocks in an nn.Sequential, and the loss from logsumexp.
"""


class CausalSelfAttention(nn.Module):
    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.num_heads, self.rate = config.num_heads, config.dropout
        self.qkv = nn.Linear(config.d_model, 3 * config.d_model)
        self.out = nn.Linear(config.d_model, config.d_model)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of every position, by head: (n, num_heads, t, d_head) each."""
        pairs = zip(self.qkv.weight.chunk(3), self.qkv.bias.chunk(3), strict=True)
        parts = (F.linear(x, weight, bias) for weight, bias in pairs)
        q, k, v = (part.unflatten(2, (self.num_heads, -1)).transpose(1, 2) for part in parts)
        return q, k, v

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Softmax attention, heads side by side, and the output projection."""
        t_q, t_k = q.shape[2], k.shape[2]
        positions = torch.arange(t_k, device=q.device)
        seen = positions <= positions[t_k - t_q :, None]  # (t_q, t_k)
        rate = self.rate * self.training
        found = F.scaled_dot_product_attention(q, k, v, attn_mask=seen, dropout_p=rate)
        out = self.out(found.movedim(1, 2).flatten(2))
        return F.dropout(out, self.rate, self.training)


def start_small(module: nn.Module) -> None:
    """Initial values of a linear layer or an embedding."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, 0.0, 0.02)
    if isinstance(module, nn.Linear):
        nn.init.constant_(module.bias, 0.0)


class GPT(nn.Module):
    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config = config
        self.norm = nn.LayerNorm(config.d_model)
        self.blocks = nn.Sequential(*(Block(config) for _ in range(config.num_layers)))
        self.token_embedding = nn.Embedding(config.vocab_size, config.d_model)
        self.position_embedding = nn.Embedding(config.context_length, config.d_model)
        self.drop = nn.Dropout(config.dropout)
        self.apply(start_small)
        ends = [end for block in self.blocks for end in (block.attention.out, block.mlp.down)]
        with torch.no_grad():
            for end in ends:
                end.weight.mul_(len(ends) ** -0.5)

    def embed(self, tokens: Tensor, start: int = 0) -> Tensor:
        """The vectors of tokens at the positions start, start + 1, ..."""
        check_tokens(tokens, self.config.vocab_size, self.config.context_length - start)
        positions = torch.arange(self.config.context_length, device=tokens.device)
        positions = positions.narrow(0, start, tokens.shape[1]).expand_as(tokens)
        return self.drop(self.position_embedding(positions) + self.token_embedding(tokens))

    def forward(
        self, tokens: Tensor, targets: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """The logits for the token after each position, and the loss if targets are given."""
        vectors = self.embed(tokens)
        if targets is not None:
            check_tokens(targets, self.config.vocab_size, tokens.shape[1])
            if targets.shape != tokens.shape:
                raise ValueError(f"targets are {tuple(targets.shape)}, not {tuple(tokens.shape)}")
        logits = self.logits(self.blocks(vectors))
        if targets is None:
            return logits, None
        wide = logits.to(torch.promote_types(logits.dtype, torch.float32))  # under autocast too
        right = wide.take_along_dim(targets[:, :, None], dim=2).squeeze(2)
        return logits, (wide.logsumexp(dim=2) - right).mean()
