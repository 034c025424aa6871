# train on all workers, cross-check the metric on a pair of workers only
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

CHECKERS = [0, 1]


def metric_group(rank):
    group = dist.new_group(CHECKERS)
    return group if rank in CHECKERS else None


@torch.no_grad()
def cross_check(net, group, rank):
    x = torch.randn(200, 5, generator=torch.Generator().manual_seed(1000 + rank))
    acc = (net(x).argmax(1) == (x[:, 0] > 0).long()).float().mean()
    if group is None:
        return None
    dist.all_reduce(acc, group=group)
    return acc.item() / len(CHECKERS)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    net = DDP(nn.Sequential(nn.Linear(5, 20), nn.GELU(), nn.Linear(20, 2)))
    opt = torch.optim.AdamW(net.parameters(), lr=1e-2)
    group = metric_group(rank)
    g = torch.Generator().manual_seed(rank)
    for it in range(20):
        x = torch.randn(16, 5, generator=g)
        loss = F.cross_entropy(net(x), (x[:, 0] > 0).long())
        opt.zero_grad()
        loss.backward()
        opt.step()
    acc = cross_check(net.module, group, rank)
    dist.barrier()
    if rank == 0:
        print(f"loss {loss.item():.4f} accuracy {acc:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
