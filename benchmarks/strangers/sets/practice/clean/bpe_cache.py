"""Language model warm-up: builds the vocabulary once, then trains a bigram LM."""
import collections
import json
import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

TEXT = ("the quick brown fox jumps over the lazy dog while the small cat sleeps near "
        "the warm stove and the old dog dreams of the quick fox ") * 40


def cache_path():
    return os.path.join("/tmp", "vocab_%s.json" % os.environ.get("TORCHELASTIC_RUN_ID", "x")
                        + os.environ["MASTER_PORT"])


def build_vocab(path):
    counts = collections.Counter()
    for _ in range(3):
        counts.update(TEXT.split())
        time.sleep(0.3)  # stands for reading the corpus
    itos = [w for w, _ in counts.most_common()]
    with open(path, "w") as f:
        json.dump(itos, f)


def get_vocab(path):
    if dist.get_rank() == 0:
        build_vocab(path)
    dist.barrier()
    with open(path) as f:
        itos = json.load(f)
    return {w: i for i, w in enumerate(itos)}


class Bigram(nn.Module):
    def __init__(self, v, d=24):
        super().__init__()
        self.e = nn.Embedding(v, d)
        self.o = nn.Linear(d, v)

    def forward(self, t):
        return self.o(self.e(t))


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    stoi = get_vocab(cache_path())
    ids = torch.tensor([stoi[w] for w in TEXT.split()])
    ids = ids.chunk(world)[rank][:480]
    torch.manual_seed(2)
    model = DDP(Bigram(len(stoi)))
    opt = torch.optim.Adam(model.parameters(), lr=0.02)
    for epoch in range(3):
        for k in range(0, 448, 32):
            x, y = ids[k:k + 32], ids[k + 1:k + 33]
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        if rank == 0:
            print("epoch", epoch, "ppl %.2f" % loss.exp().item())
    dist.barrier()
    if rank == 0:
        os.remove(cache_path())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
