"""Character model on a line-oriented corpus that is read as a stream."""
import os
import random

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

CORPUS = "corpus.txt"
VOCAB = "abcdefghijklmnopqrstuvwxyz "


def write_corpus(path, lines=160):
    rng = random.Random(5)
    with open(path + ".tmp", "w") as f:
        for _ in range(lines):
            f.write("".join(rng.choice(VOCAB) for _ in range(24)) + "\n")
    os.replace(path + ".tmp", path)


class LineStream(IterableDataset):
    def __init__(self, path):
        self.path = path

    def encode(self, line):
        return torch.tensor([VOCAB.index(c) for c in line.rstrip("\n")])

    def __iter__(self):
        info = get_worker_info()
        workers = info.num_workers if info else 1
        step = workers * dist.get_world_size()
        offset = dist.get_rank() * workers + (info.id if info else 0)
        with open(self.path) as f:
            for number, line in enumerate(f):
                if number % step == offset:
                    yield number, self.encode(line)


class CharModel(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.emb = nn.Embedding(len(VOCAB), dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, len(VOCAB))

    def forward(self, x):
        return self.out(self.rnn(self.emb(x))[0])


def setup():
    dist.init_process_group("gloo")
    if dist.get_rank() == 0:
        write_corpus(CORPUS)
    dist.barrier()
    torch.manual_seed(11)


def main(epochs=2):
    setup()
    loader = DataLoader(LineStream(CORPUS), batch_size=8, num_workers=2)
    model = DistributedDataParallel(CharModel())
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(epochs):
        lines, loss_sum = 0, 0.0
        for numbers, ids in loader:
            logits = model(ids[:, :-1])
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            lines += len(numbers)
            loss_sum += loss.item() * len(numbers)
        stats = torch.tensor([float(lines), loss_sum])
        dist.all_reduce(stats)
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: {int(stats[0])} lines, loss {stats[1] / stats[0]:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
