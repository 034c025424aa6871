"""Two-tower retrieval, trained by mp.spawn; recall@k comes from a small metrics class."""
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

WORLD = 2


class Metric:
    """Holds tensors of state; compute() returns the value over all processes."""

    def __init__(self, sync_on_compute=True):
        self.sync_on_compute = sync_on_compute
        self.reset()

    def _gathered(self, state):
        if not (self.sync_on_compute and dist.is_initialized()):
            return state
        parts = [torch.zeros_like(state) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, state)
        return torch.stack(parts).sum(0)


class RecallAtK(Metric):
    def __init__(self, k, **kw):
        self.k = k
        super().__init__(**kw)

    def reset(self):
        self.state = torch.zeros(2)

    def update(self, scores, target):
        hits = (scores.topk(self.k, dim=1).indices == target[:, None]).any(1)
        self.state += torch.tensor([hits.sum().item(), float(len(target))])

    def compute(self):
        hits, total = self._gathered(self.state)
        return (hits / total).item()


class Towers(nn.Module):
    def __init__(self, n_items, dim=12):
        super().__init__()
        self.user = nn.Sequential(nn.Linear(10, 24), nn.ReLU(), nn.Linear(24, dim))
        self.item = nn.Embedding(n_items, dim)

    def forward(self, x):
        return self.user(x) @ self.item.weight.T


def make_split(n, seed, n_items=20):
    g = torch.Generator().manual_seed(seed)
    proj = torch.randn(10, n_items, generator=torch.Generator().manual_seed(99))
    x = torch.randn(n, 10, generator=g)
    return TensorDataset(x, (x @ proj).argmax(1))


@torch.no_grad()
def test(net, loader, k=3):
    net.eval()
    metric = RecallAtK(k)
    for x, y in loader:
        metric.update(net(x), y)
    net.train()
    return metric.compute()


def worker(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=WORLD)
    fit(rank)
    dist.destroy_process_group()


def fit(rank):
    train_set, test_set = make_split(256, 1), make_split(64, 2)
    sampler = DistributedSampler(train_set, num_replicas=WORLD, rank=rank)
    loader = DataLoader(train_set, batch_size=16, sampler=sampler)
    test_loader = DataLoader(test_set, batch_size=32)
    torch.manual_seed(7)
    model = DistributedDataParallel(Towers(20))
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x, y in loader:
            opt.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            opt.step()
        if rank == 0:
            recall = test(model.module, test_loader)
            print(f"epoch {epoch}: recall@3 {recall:.3f}", flush=True)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


if __name__ == "__main__":
    mp.spawn(worker, args=(free_port(),), nprocs=WORLD)
