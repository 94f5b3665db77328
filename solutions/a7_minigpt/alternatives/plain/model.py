"""Formulas written out: attention, GELU and loss.

Attention weights and output have a dropout each. Initial values are drawn again, then scaled.
"""


class CausalSelfAttention(nn.Module):
    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.num_heads = config.num_heads
        self.qkv = nn.Linear(config.d_model, 3 * config.d_model)
        self.out = nn.Linear(config.d_model, config.d_model)
        self.weights_dropout = nn.Dropout(config.dropout)
        self.out_dropout = nn.Dropout(config.dropout)

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Softmax attention, heads side by side, and the output projection."""
        n, num_heads, t_q, d_head = q.shape
        t_k = k.shape[2]
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(d_head)
        query = torch.arange(t_k - t_q, t_k, device=q.device)
        key = torch.arange(t_k, device=q.device)
        scores = scores.masked_fill(key[None, :] > query[:, None], float("-inf"))
        weights = self.weights_dropout(torch.softmax(scores, dim=-1))
        y = torch.matmul(weights, v)  # (n, num_heads, t_q, d_head)
        merged = y.permute(0, 2, 1, 3).reshape(n, t_q, num_heads * d_head)
        return self.out_dropout(self.out(merged))


class MLP(nn.Module):
    """The GELU is written out."""

    def forward(self, x: Tensor) -> Tensor:
        """Raises ValueError unless x is (n, t, d_model)."""
        check_vectors(x, self.up.in_features)
        x = self.up(x)
        x = x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))
        x = self.down(x)
        return self.dropout(x)


class GPT(nn.Module):
    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config = config
        self.token_embedding = nn.Embedding(config.vocab_size, config.d_model)
        self.position_embedding = nn.Embedding(config.context_length, config.d_model)
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList()
        for _ in range(config.num_layers):
            self.blocks.append(Block(config))
        self.norm = nn.LayerNorm(config.d_model)
        for module in self.modules():
            if isinstance(module, nn.Embedding | nn.Linear):
                module.weight.data = 0.02 * torch.randn(module.weight.shape)
            if isinstance(module, nn.Linear):
                module.bias.data = torch.zeros(module.bias.shape)
        for block in self.blocks:
            block.attention.out.weight.data /= (2 * config.num_layers) ** 0.5
            block.mlp.down.weight.data /= (2 * config.num_layers) ** 0.5

    def forward(
        self, tokens: Tensor, targets: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """The logits for the token after each position, and the loss if targets are given."""
        x = self.embed(tokens)
        if targets is not None:
            check_tokens(targets, self.config.vocab_size, self.config.context_length)
            if targets.shape != tokens.shape:
                raise ValueError("targets must have the shape of tokens")
        for block in self.blocks:
            x = block(x)
        logits = self.logits(x)
        loss = None
        if targets is not None:
            log_p = torch.log_softmax(
                logits.float() if logits.dtype.itemsize < 4 else logits, dim=-1
            )
            loss = -torch.gather(log_p, 2, targets[:, :, None]).mean()
        return logits, loss
