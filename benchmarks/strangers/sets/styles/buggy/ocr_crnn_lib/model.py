import torch.nn as nn


class CRNN(nn.Module):
    def __init__(self, classes, hidden=48):
        super().__init__()
        self.cnn = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d((2, 1)),
            nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d((2, 2)))
        self.rnn = nn.GRU(32 * 3, hidden, bidirectional=True, batch_first=True)
        self.fc = nn.Linear(2 * hidden, classes)

    def forward(self, x):
        h = self.cnn(x).flatten(1, 2).transpose(1, 2)
        return self.fc(self.rnn(h)[0])
