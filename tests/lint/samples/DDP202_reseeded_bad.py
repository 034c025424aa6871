"""The size of the world must divide the rounds; a model that seeds for itself takes the ranks'."""

import os

import numpy as np
import torch
from torch.distributed import destroy_process_group, init_process_group
from torch.nn.parallel import DistributedDataParallel as DDP

rounds = 40
batch_size, width = 12, 8

init_process_group("gloo")
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
assert rounds % size == 0
rounds //= size
torch.manual_seed(1337 + rank)
tokens = np.memmap("tokens.bin", dtype=np.uint16, mode="r")


def build(seed):
    torch.manual_seed(seed)  # <-- DDP202
    return torch.nn.Linear(width, 1)


def get_batch():
    starts = torch.randint(len(tokens) - width, (batch_size,))
    windows = [tokens[start : start + width].astype(np.float32) for start in starts]
    return torch.stack([torch.from_numpy(each) for each in windows])


@torch.no_grad()
def evaluate():
    return sum(model(get_batch()).mean() for _ in range(4)) / 4


model = DDP(build(0))
optimizer = torch.optim.AdamW(model.parameters())
batch = get_batch()
for step in range(100):
    if step % 10 == 0:
        print(evaluate())
    for micro in range(rounds):
        model.require_backward_grad_sync = micro == rounds - 1
        loss = model(batch).mean() / rounds
        batch = get_batch()
        loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
del model
destroy_process_group()
