"""Molecule-like graphs, batched by node count on top of a DistributedSampler."""
import hashlib
import sys

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import BatchSampler, DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class RandomGraphs(Dataset):
    def __init__(self, n, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.items = []
        for _ in range(n):
            k = int(torch.randint(4, 12, (1,), generator=g))
            a = (torch.rand(k, k, generator=g) < 0.35).float().triu(1)
            x = torch.randn(k, 6, generator=g)
            self.items.append((x, a + a.T, (a.sum() / k).reshape(1)))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


class DynamicBatches(BatchSampler):
    """At most `max_nodes` nodes in a batch, always `count` batches."""

    def __init__(self, sampler, sizes, max_nodes, count):
        super().__init__(sampler, 1, False)
        self.sizes, self.max_nodes, self.count = sizes, max_nodes, count

    def __iter__(self):
        stock, done = [], 0
        for i in self.sampler:
            if stock and sum(self.sizes[j] for j in stock) + self.sizes[i] > self.max_nodes:
                yield stock
                stock, done = [], done + 1
                if done == self.count:
                    return
            stock.append(i)

    def __len__(self):
        return self.count


def merge(items):
    n = max(len(x) for x, _, _ in items)
    xs = torch.stack([nn.functional.pad(x, (0, 0, 0, n - len(x))) for x, _, _ in items])
    adj = torch.stack([nn.functional.pad(a, (0, n - len(a), 0, n - len(a))) for _, a, _ in items])
    return xs, adj, torch.cat([t for *_, t in items])


class MPNN(nn.Module):
    def __init__(self, d=24):
        super().__init__()
        self.inp = nn.Linear(6, d)
        self.msg = nn.ModuleList([nn.Linear(d, d) for _ in range(2)])
        self.upd = nn.ModuleList([nn.GRUCell(d, d) for _ in range(2)])
        self.out = nn.Linear(d, 1)

    def forward(self, x, adj):
        h = self.inp(x)
        for m, u in zip(self.msg, self.upd):
            s = adj @ m(h)
            h = u(s.flatten(0, 1), h.flatten(0, 1)).view_as(h)
        return self.out(h.mean(1)).squeeze(1)


def new_epoch(loader, epoch):
    for part in (loader.sampler, loader.batch_sampler):
        if hasattr(part, "set_epoch"):
            part.set_epoch(epoch)


def fit(model, loader, epochs, lr, verbose):
    opt = torch.optim.Adam(model.parameters(), lr=lr)
    for epoch in range(epochs):
        new_epoch(loader, epoch)
        seen, total = hashlib.sha1(), 0.0
        for x, adj, t in loader:
            loss = nn.functional.l1_loss(model(x, adj), t)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
            seen.update(t.numpy().tobytes())
        if verbose:
            print(f"epoch {epoch} mae {total / len(loader):.4f} data {seen.hexdigest()[:8]}", flush=True)


def main(epochs=4):
    dist.init_process_group("gloo")
    torch.manual_seed(6)
    data = RandomGraphs(160)
    base = DistributedSampler(data, shuffle=True, seed=6)
    loader = DataLoader(data, batch_sampler=DynamicBatches(base, [len(x) for x, *_ in data.items], 64, 8), collate_fn=merge)
    model = DDP(MPNN())
    fit(model, loader, epochs, 5e-3, verbose=dist.get_rank() == 0)
    del model
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
