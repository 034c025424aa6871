"""Fraud scoring on shards of different length; the processes agree on every step and on the end."""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset


def shard(rank):
    g = torch.Generator().manual_seed(60 + rank)
    n = 400 + 170 * rank
    x = torch.randn(n, 12, generator=g)
    y = (x[:, 0] * x[:, 1] + x[:, 2] > 0.5).float()
    return TensorDataset(x, y)


def all_have(flag):
    t = torch.tensor(1 if flag else 0)
    dist.all_reduce(t, op=dist.ReduceOp.MIN)
    return bool(t.item())


def in_step(loader):
    it = iter(loader)
    while True:
        batch = next(it, None)
        if not all_have(batch is not None):
            return
        yield batch


def mean_loss(net, data):
    x, y = data.tensors
    with torch.no_grad():
        loss = F.binary_cross_entropy_with_logits(net(x).squeeze(1), y, reduction="sum")
    acc = torch.tensor([loss.item(), float(len(y))], dtype=torch.float64)
    dist.all_reduce(acc)
    return (acc[0] / acc[1]).item()


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    data = shard(rank)
    held = TensorDataset(*[t[:100] for t in data.tensors])
    data = TensorDataset(*[t[100:] for t in data.tensors])
    torch.manual_seed(5)
    net = DDP(nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 1)))
    opt = torch.optim.Adam(net.parameters(), lr=8e-3)
    order = torch.Generator().manual_seed(rank)
    loader = DataLoader(data, 32, shuffle=True, drop_last=True, generator=order)
    best, bad = float("inf"), 0
    for epoch in range(30):
        steps = 0
        for x, y in in_step(loader):
            opt.zero_grad()
            F.binary_cross_entropy_with_logits(net(x).squeeze(1), y).backward()
            opt.step()
            steps += 1
        now = mean_loss(net.module, held)
        if rank == 0:
            print(f"epoch {epoch} steps {steps} held-out loss {now:.4f}", flush=True)
        if now < best - 1e-3:
            best, bad = now, 0
        else:
            bad += 1
        if bad == 3:
            break
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
