import torch.nn.functional as F
from torch import nn


class WindowLM(nn.Module):
    def __init__(self, vocab, dim, context, hidden):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.mix = nn.Sequential(nn.Flatten(), nn.Linear(dim * context, hidden), nn.GELU(), nn.Linear(hidden, dim))
        self.out = nn.Linear(dim, vocab)

    def forward(self, window, following=None):
        logits = self.out(self.mix(self.tok(window)))
        if following is None:
            return logits
        return F.cross_entropy(logits, following)
