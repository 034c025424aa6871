import torch
import torch.nn as nn


class SmallEncoder(nn.Module):
    def __init__(self, vocab=22, dim=32, heads=4, layers=1, max_len=7):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.pos = nn.Embedding(max_len, dim)
        layer = nn.TransformerEncoderLayer(dim, heads, 64, dropout=0.0, batch_first=True)
        self.enc = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.cls = nn.Linear(dim, 2)
        self.loss_fct = nn.CrossEntropyLoss()

    def forward(self, input_ids, labels=None):
        h = self.tok(input_ids) + self.pos(torch.arange(input_ids.size(1)))
        logits = self.cls(self.enc(h)[:, -1])
        loss = self.loss_fct(logits, labels) if labels is not None else None
        return loss, logits
