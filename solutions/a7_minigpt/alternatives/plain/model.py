"""Formulas by hand: attention, GELU and loss are written out.

Attention weights and output have a dropout each. First values are drawn anew, and then scaled.
"""


class CausalSelfAttention(nn.Module):
    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.qkv = nn.Linear(config.width, 3 * config.width)
        self.out = nn.Linear(config.width, config.width)
        self.weights_dropout = nn.Dropout(config.dropout)
        self.out_dropout = nn.Dropout(config.dropout)

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """What the queries find among keys and values."""
        n, heads, t_q, size = q.shape
        t_k = k.shape[2]
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(size)
        query = torch.arange(t_k - t_q, t_k, device=q.device)
        key = torch.arange(t_k, device=q.device)
        scores = scores.masked_fill(key[None, :] > query[:, None], float("-inf"))
        weights = self.weights_dropout(torch.softmax(scores, dim=-1))
        found = torch.matmul(weights, v)  # (n, heads, t_q, size)
        merged = found.permute(0, 2, 1, 3).reshape(n, t_q, heads * size)
        return self.out_dropout(self.out(merged))


class MLP(nn.Module):
    """The GELU is written out."""

    def forward(self, x: Tensor) -> Tensor:
        """Raises ValueError unless x is (n, t, width)."""
        check_vectors(x, self.up.in_features)
        x = self.up(x)
        x = x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))
        x = self.down(x)
        return self.dropout(x)


class GPT(nn.Module):
    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config = config
        self.token_embedding = nn.Embedding(config.vocabulary, config.width)
        self.position_embedding = nn.Embedding(config.context, config.width)
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList()
        for _ in range(config.layers):
            self.blocks.append(Block(config))
        self.norm = nn.LayerNorm(config.width)
        for module in self.modules():
            if isinstance(module, nn.Embedding | nn.Linear):
                module.weight.data = 0.02 * torch.randn(module.weight.shape)
            if isinstance(module, nn.Linear):
                module.bias.data = torch.zeros(module.bias.shape)
        for block in self.blocks:
            block.attention.out.weight.data /= (2 * config.layers) ** 0.5
            block.mlp.down.weight.data /= (2 * config.layers) ** 0.5

    def forward(
        self, tokens: Tensor, targets: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Scores (logits) for the token after each place, and the loss if targets are given."""
        x = self.embed(tokens)
        if targets is not None:
            check_tokens(targets, self.config.vocabulary, self.config.context)
            if targets.shape != tokens.shape:
                raise ValueError("targets and tokens differ in shape")
        for block in self.blocks:
            x = block(x)
        logits = self.scores(x)
        loss = None
        if targets is not None:
            log_p = torch.log_softmax(
                logits.float() if logits.dtype.itemsize < 4 else logits, dim=-1
            )
            loss = -torch.gather(log_p, 2, targets[:, :, None]).mean()
        return logits, loss
