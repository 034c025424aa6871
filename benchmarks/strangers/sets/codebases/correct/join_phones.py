"""Phone classifier on sites with unequal recordings: DDP join in the epoch, sums reduced after it."""
import argparse

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel as DDP

MEANS = torch.randn(5, 10, generator=torch.Generator().manual_seed(0))


def site(rank, epoch, batch):
    """The recordings of one site, more at some than at others."""
    g = torch.Generator().manual_seed(100 * rank + 7)
    n = 240 + 90 * rank
    y = torch.randint(0, 5, (n,), generator=g)
    x = MEANS[y] + 0.8 * torch.randn(n, 10, generator=g)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(epoch))
    for index in order.split(batch):
        yield x[index], y[index]


def epoch_of(model, opt, rank, epoch, batch):
    sums = torch.zeros(3)
    with Join([model]):
        for x, y in site(rank, epoch, batch):
            logits = model(x)
            loss = F.cross_entropy(logits, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            sums += torch.tensor([loss.item() * len(y), (logits.argmax(1) == y).sum(), len(y)])
    return sums


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--batch", type=int, default=16)
    args = p.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)
    model = DDP(nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 5)))
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    best = float("inf")
    for epoch in range(args.epochs):
        sums = epoch_of(model, opt, rank, epoch, args.batch)
        dist.all_reduce(sums)
        loss, acc = (sums[0] / sums[2]).item(), (sums[1] / sums[2]).item()
        if loss < best:
            best = loss
        if rank == 0:
            print(f"epoch {epoch} loss {loss:.4f} acc {acc:.3f} of {int(sums[2])}", flush=True)
        if acc > 0.97:
            break
    dist.barrier()
    del model
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
