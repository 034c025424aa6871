"""Each rank streams documents of its own: one may be longer than another."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset


class Windows(IterableDataset):
    def __init__(self, documents, width, rank, ranks):
        self.documents, self.width = documents, width
        self.rank, self.ranks = rank, ranks

    def __iter__(self):
        for number, path in enumerate(self.documents):
            if number % self.ranks == self.rank:
                with open(path, "rb") as document:
                    tokens = torch.tensor(list(document.read()))
                for first in range(0, len(tokens) - self.width, self.width):
                    yield tokens[first : first + self.width]


def train(paths):
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    model = DistributedDataParallel(nn.Embedding(256, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in DataLoader(Windows(paths, 16, rank, ranks), batch_size=4):  # <-- DDP207
        model(batch).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    train(__import__("corpus").paths())
