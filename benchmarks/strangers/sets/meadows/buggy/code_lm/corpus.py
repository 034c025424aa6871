import torch
from torch.utils.data import Dataset


class TokenWindows(Dataset):
    """Sliding windows over a token stream with repeated snippets."""

    def __init__(self, tokens, context, vocab, seed=0):
        g = torch.Generator().manual_seed(seed)
        snippet = torch.randint(0, vocab, (97,), generator=g)
        stream = snippet.repeat(tokens // 97 + 1)[:tokens]
        noise = torch.rand(tokens, generator=g) < 0.05
        self.stream = torch.where(noise, torch.randint(0, vocab, (tokens,), generator=g), stream)
        self.context = context

    def __len__(self):
        return len(self.stream) - self.context

    def __getitem__(self, i):
        return self.stream[i : i + self.context], self.stream[i + self.context]
