"""Different numbers of items per process: sizes first, then padded values; batches are counted beforehand."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


def gather_uneven(t):
    sizes = [None] * dist.get_world_size()
    dist.all_gather_object(sizes, len(t))
    buf = torch.zeros(max(sizes))
    buf[:len(t)] = t
    out = [torch.empty_like(buf) for _ in sizes]
    dist.all_gather(out, buf)
    return torch.cat([o[:n] for o, n in zip(out, sizes)])


def local_batches(rank):
    g = torch.Generator().manual_seed(rank)
    return [torch.randn(4 + int(torch.randint(0, 5, (1,), generator=g)), 6, generator=g) for _ in range(9 + 2 * rank)]


def endless(batches):
    while True:
        yield from batches


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    mine = local_batches(rank)
    steps = torch.tensor(len(mine))
    dist.all_reduce(steps, op=dist.ReduceOp.MAX)
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1)))
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(2):
        for x, _ in zip(endless(mine), range(int(steps))):
            loss = (model(x).squeeze(1) - x.max(1).values).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        with torch.no_grad():
            err = torch.cat([(model.module(x).squeeze(1) - x.max(1).values).abs() for x in mine])
        everyone = gather_uneven(err)
        if rank == 0:
            print(f"epoch {epoch}: {len(everyone)} items, median error {everyone.median():.4f}", flush=True)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
