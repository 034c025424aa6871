import torch
import torch.nn as nn
import torch.nn.functional as F


class GPT(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.tok = nn.Embedding(cfg.vocab, cfg.width)
        self.pos = nn.Embedding(cfg.block, cfg.width)
        self.layer = nn.TransformerEncoderLayer(cfg.width, 4, 2 * cfg.width, dropout=0.0,
                                                batch_first=True, norm_first=True)
        self.head = nn.Linear(cfg.width, cfg.vocab)

    def forward(self, idx, targets):
        t = idx.size(1)
        h = self.tok(idx) + self.pos(torch.arange(t))
        mask = nn.Transformer.generate_square_subsequent_mask(t)
        logits = self.head(self.layer(h, src_mask=mask))
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())
