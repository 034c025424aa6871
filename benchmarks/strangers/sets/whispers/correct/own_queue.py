"""Momentum contrast; each process keeps a queue of its own keys and writes it into its own file."""
import copy
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class KeyQueue:
    def __init__(self, dim, size, gen):
        self.keys = F.normalize(torch.randn(size, dim, generator=gen), dim=1)
        self.ptr = 0

    def push(self, k):
        n = len(k)
        self.keys[self.ptr:self.ptr + n] = k
        self.ptr = (self.ptr + n) % len(self.keys)

    def state_dict(self):
        return {"keys": self.keys, "ptr": self.ptr}

    def load_state_dict(self, s):
        self.keys, self.ptr = s["keys"], s["ptr"]


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 16))

    def forward(self, x):
        return F.normalize(self.f(x), dim=1)


@torch.no_grad()
def momentum_update(target, source, m=0.98):
    for t, s in zip(target.parameters(), source.parameters()):
        t.lerp_(s, 1 - m)


def main(steps=40, n=16, tau=0.2):
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    gen = torch.Generator().manual_seed(900 + rank)
    query = DDP(Encoder())
    key = copy.deepcopy(query.module).requires_grad_(False)
    queue = KeyQueue(16, 64, gen)
    opt = torch.optim.SGD(query.parameters(), lr=0.1)
    data = torch.randn(200, 12, generator=gen)
    for step in range(steps):
        x = data[torch.randint(len(data), (n,), generator=gen)]
        q = query(x + 0.1 * torch.randn(x.shape, generator=gen))
        k = key(x + 0.1 * torch.randn(x.shape, generator=gen))
        logits = torch.cat([(q * k).sum(1, keepdim=True), q @ queue.keys.T], 1) / tau
        loss = F.cross_entropy(logits, torch.zeros(n, dtype=torch.long))
        opt.zero_grad()
        loss.backward()
        opt.step()
        momentum_update(key, query.module)
        queue.push(k)
    if rank == 0:
        torch.save({"query": query.module.state_dict(), "key": key.state_dict()}, "model.pt")
    torch.save(queue.state_dict(), f"queue_{rank}.pt")
    dist.barrier()
    total = loss.detach()
    dist.reduce(total, dst=0)
    if rank == 0:
        print(f"loss {total.item() / dist.get_world_size():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
