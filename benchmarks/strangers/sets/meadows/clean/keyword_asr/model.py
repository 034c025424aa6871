from torch import nn


class KeywordNet(nn.Module):
    def __init__(self, n_mels=16, n_words=6):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(n_mels, 32, 5, padding=2), nn.BatchNorm1d(32), nn.ReLU(),
            nn.Conv1d(32, 32, 3, padding=1), nn.ReLU(),
        )
        self.out = nn.Linear(32, n_words)

    def forward(self, mel):
        return self.out(self.conv(mel.transpose(1, 2)).mean(-1))
