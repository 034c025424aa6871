import torch.nn as nn


class CTCEncoder(nn.Module):
    def __init__(self, feat, hidden, vocab):
        super().__init__()
        self.rnn = nn.GRU(feat, hidden, batch_first=True)
        self.proj = nn.Linear(hidden, vocab)

    def forward(self, x):
        h, _ = self.rnn(x)
        return self.proj(h)
