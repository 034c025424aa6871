import torch.nn as nn


class Seq2Seq(nn.Module):
    def __init__(self, vocab, d):
        super().__init__()
        self.emb = nn.Embedding(vocab, d, padding_idx=0)
        self.enc = nn.GRU(d, d, batch_first=True)
        self.dec = nn.GRU(d, d, batch_first=True)
        self.out = nn.Linear(d, vocab)

    def forward(self, src, prev):
        _, h = self.enc(self.emb(src))
        y, _ = self.dec(self.emb(prev), h)
        return self.out(y)
