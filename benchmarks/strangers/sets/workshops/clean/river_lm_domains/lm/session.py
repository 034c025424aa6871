import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

from .evaluators import REGISTRY

VOCAB, LENGTH = 40, 24


class Model(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, width)
        self.rnn = nn.LSTM(width, width, batch_first=True)
        self.head = nn.Linear(width, VOCAB)

    def forward(self, ids):
        return self.head(self.rnn(self.embed(ids))[0])


def documents(n, domain, seed):
    """Domain 0 is river reports (regular), domain 1 is fishing stories."""
    g = torch.Generator().manual_seed(seed)
    start = torch.randint(VOCAB, (n, 1), generator=g)
    step = torch.where(torch.rand(n, LENGTH, generator=g) < (0.05 if domain == 0 else 0.7),
                       torch.randint(VOCAB, (n, LENGTH), generator=g), torch.full((n, LENGTH), 3))
    return (start + step.cumsum(1)) % VOCAB


class Session:
    def __init__(self, rank, world):
        self.rank = rank
        torch.manual_seed(1)
        self.model = DistributedDataParallel(Model())
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=4e-3)
        docs = torch.cat([documents(160, 0, 1), documents(160, 1, 2)])
        self.train_docs = docs[torch.randperm(320)][rank::world]
        held = torch.cat([documents(60, 0, 3), documents(20, 1, 4)])
        self.dev = held.chunk(world)[rank].split(10)

    def batches(self):
        for part in torch.randperm(len(self.train_docs)).split(16):
            yield self.train_docs[part]

    @torch.no_grad()
    def validate(self):
        evaluators = {name: cls() for name, cls in REGISTRY.items()}
        self.model.eval()
        for ids in self.dev:
            labels = F.pad(ids[:, 1:], (0, 1), value=-100)
            logits = self.model(ids)
            for e in evaluators.values():
                e.compute(logits, labels)
        self.model.train()
        return {name: e.aggregate() for name, e in evaluators.items()}

    def train(self, epochs=4):
        for epoch in range(epochs):
            for ids in self.batches():
                loss = F.cross_entropy(self.model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
            scores = self.validate()
            if self.rank == 0:
                print(epoch, {k: round(v, 3) for k, v in scores.items()}, flush=True)
