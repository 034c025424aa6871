from torch import nn


class Tagger(nn.Module):
    def __init__(self, n_words, dim=16, n_tags=3):
        super().__init__()
        self.words = nn.Embedding(n_words, dim)
        self.lstm = nn.LSTM(dim, dim, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * dim, n_tags)

    def forward(self, ids):
        return self.out(self.lstm(self.words(ids))[0])
