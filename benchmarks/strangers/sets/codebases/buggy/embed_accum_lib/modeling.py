import torch
import torch.nn as nn
import torch.nn.functional as F


class BiEncoderModel(nn.Module):
    def __init__(self, args, temperature):
        super().__init__()
        self.embeddings = nn.Embedding(args.vocab_size, args.hidden_size)
        self.dense = nn.Linear(args.hidden_size, args.hidden_size)
        self.normalized, self.temperature = args.normalized, temperature

    def encode(self, ids):
        hidden = self.dense(torch.tanh(self.embeddings(ids)).mean(1))
        return F.normalize(hidden, dim=-1) if self.normalized else hidden

    def forward(self, query, passage):
        scores = self.encode(query) @ self.encode(passage).t() / self.temperature
        return F.cross_entropy(scores, torch.arange(len(scores)))
