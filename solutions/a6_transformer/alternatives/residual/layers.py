"""Learned positions as an embedding, and layer norm from torch.var_mean."""


class LearnedPositions(nn.Embedding):
    """An embedding of positions."""

    def __init__(self, max_length: int, d_model: int) -> None:
        check_sizes(max_length, d_model)
        super().__init__(max_length, d_model)

    def forward(self, length: int) -> Tensor:
        if length < 1 or length > self.num_embeddings:
            raise ValueError(f"length must be at most {self.num_embeddings}, got {length}")
        return super().forward(torch.arange(length))


class LayerNorm(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        check_floats(x)
        if x.ndim == 0 or x.shape[-1] != len(self.weight):
            raise ValueError(f"the last axis must be {len(self.weight)}, got {tuple(x.shape)}")
        variance, mean = torch.var_mean(x, dim=-1, unbiased=False, keepdim=True)
        return (x - mean) / (variance + self.eps).sqrt() * self.weight + self.bias
