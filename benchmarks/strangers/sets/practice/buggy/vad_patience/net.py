import torch.nn as nn


class FrameClassifier(nn.Module):
    def __init__(self, n_mels, hidden):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(n_mels, hidden), nn.ReLU(),
            nn.Linear(hidden, hidden), nn.ReLU())
        self.out = nn.Linear(hidden, 2)

    def forward(self, frames):
        return self.out(self.body(frames))
