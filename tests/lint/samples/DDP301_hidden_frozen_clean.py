"""A reward model over a language model all of which is frozen."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import logsigmoid
from torch.nn.parallel import DistributedDataParallel


class Language(nn.Module):
    def __init__(self, words=32, width=16):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.body = nn.GRU(width, width, batch_first=True)
        self.out = nn.Linear(width, words)

    def hidden(self, ids):
        return self.body(self.embed(ids))[0]

    def forward(self, ids):
        return self.out(self.hidden(ids))


class Reward(nn.Module):
    def __init__(self):
        super().__init__()
        self.language = Language()
        for each in self.language.parameters():
            each.requires_grad = False
        self.score = nn.Linear(16, 1)

    def forward(self, ids):
        return self.score(self.language.hidden(ids)[:, -1]).squeeze(-1)


def main(pairs):
    dist.init_process_group("gloo")
    model = DistributedDataParallel(Reward())
    optimizer = torch.optim.AdamW(model.parameters())
    for better, worse in pairs:
        won, lost = model(torch.cat([better, worse])).chunk(2)
        loss = -logsigmoid(won - lost).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main(torch.load("pairs.pt"))
