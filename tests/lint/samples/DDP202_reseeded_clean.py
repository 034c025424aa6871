"""The size of the world must divide the rounds; a model that seeds for itself alone."""

import os

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
tokens = torch.arange(10_000).float()


def build(seed):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return torch.nn.Linear(width, 1)


def get_batch():
    starts = torch.randint(len(tokens) - width, (batch_size,))
    return torch.stack([tokens[start : start + width] for start in starts])


model = DDP(build(0))
optimizer = torch.optim.AdamW(model.parameters())
batch = get_batch()
for _step in range(100):
    for micro in range(rounds):
        model.require_backward_grad_sync = micro == rounds - 1
        loss = model(batch).mean() / rounds
        batch = get_batch()
        loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
del model
destroy_process_group()
