"""Contrastive pairs; each process puts its own rows in front of the others' rows, so targets count from zero."""
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class GatherRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, x.contiguous())
        return tuple(parts)

    @staticmethod
    def backward(ctx, *grads):
        total = torch.stack(grads)
        dist.all_reduce(total)
        return total[dist.get_rank()]


def mine_first(x):
    parts = list(GatherRows.apply(x))
    own = parts.pop(dist.get_rank())
    return torch.cat([own] + parts)


class Pairs(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Sequential(nn.Linear(20, 40), nn.ReLU(), nn.Linear(40, 12))
        self.b = nn.Sequential(nn.Linear(15, 40), nn.ReLU(), nn.Linear(40, 12))

    def forward(self, x, y):
        u, v = F.normalize(self.a(x), dim=1), F.normalize(self.b(y), dim=1)
        target = torch.arange(len(u))
        return (F.cross_entropy(8 * u @ mine_first(v).t(), target)
                + F.cross_entropy(8 * v @ mine_first(u).t(), target)) / 2


def main():
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    torch.manual_seed(4)
    z = torch.randn(256, 6)
    data = TensorDataset(z @ torch.randn(6, 20), z @ torch.randn(6, 15))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, 16, sampler=sampler, drop_last=True)
    net = DDP(Pairs())
    opt = torch.optim.Adam(net.parameters(), 3e-3)
    for epoch in range(5):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = net(x, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"rank {dist.get_rank()} epoch {epoch} nce {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
