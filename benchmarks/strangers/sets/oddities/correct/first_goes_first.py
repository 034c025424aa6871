"""Vocabulary built by the first process while the others wait in front of the block, then read by them."""
import collections
import contextlib
import json
import os
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

TEXT = "the cat sat on the mat and the dog sat on the cat while a bird sang to the dog".split() * 20


def shared_dir():
    box = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(box, src=0)
    return box[0]


@contextlib.contextmanager
def first_goes_first():
    rank = dist.get_rank()
    if rank != 0:
        dist.barrier()
    try:
        yield rank == 0
    finally:
        if rank == 0:
            dist.barrier()


def vocabulary(path):
    with first_goes_first() as build:
        if build:
            words = [w for w, _ in collections.Counter(TEXT).most_common()]
            with open(path, "w") as f:
                json.dump(words, f)
        else:
            with open(path) as f:
                words = json.load(f)
    return {w: i for i, w in enumerate(words)}


dist.init_process_group("gloo")
torch.manual_seed(0)
vocab = vocabulary(os.path.join(shared_dir(), "vocab.json"))
ids = torch.tensor([vocab[w] for w in TEXT])
net = DDP(nn.Sequential(nn.Embedding(len(vocab), 12), nn.Linear(12, len(vocab))))
opt = torch.optim.Adam(net.parameters(), lr=2e-2)
for step in range(40):
    at = torch.randint(0, len(ids) - 1, (32,), generator=torch.Generator().manual_seed(step * 2 + dist.get_rank()))
    loss = nn.functional.cross_entropy(net(ids[at]), ids[at + 1])
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"rank {dist.get_rank()} words {len(vocab)} loss {loss.item():.3f}", flush=True)
dist.destroy_process_group()
