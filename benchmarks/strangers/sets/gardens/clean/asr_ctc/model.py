import torch.nn as nn


class Acoustic(nn.Module):
    def __init__(self, n_mel, n_units, hidden=48):
        super().__init__()
        self.conv = nn.Conv1d(n_mel, hidden, 3, padding=1)
        self.rnn = nn.GRU(hidden, hidden, batch_first=True)
        self.out = nn.Linear(hidden, n_units + 1)

    def forward(self, x):
        h = self.conv(x.transpose(1, 2)).relu().transpose(1, 2)
        h, _ = self.rnn(h)
        return self.out(h).log_softmax(-1)
