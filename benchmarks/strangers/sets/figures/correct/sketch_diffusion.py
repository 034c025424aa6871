"""Tiny noise-prediction model. The averaged weights live on rank 0 and are shared for evaluation."""
import copy
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Averager:
    def __init__(self, net, beta):
        self.net, self.beta = copy.deepcopy(net), beta

    @torch.no_grad()
    def update(self, net):
        for a, p in zip(self.net.parameters(), net.parameters()):
            a.mul_(self.beta).add_(p, alpha=1 - self.beta)


def share_from_rank0(avg, like):
    eval_net = copy.deepcopy(like)
    if avg is not None:
        eval_net.load_state_dict(avg.net.state_dict())
    for p in eval_net.parameters():
        dist.broadcast(p.data, src=0)
    return eval_net.eval()


@torch.no_grad()
def eval_loss(net, x, rank, world, seed):
    g = torch.Generator().manual_seed(seed)
    noise = torch.randn(x.shape, generator=g)
    mine, eps = x[rank::world], noise[rank::world]
    s = torch.tensor([(net(mine + eps) - eps).pow(2).sum().item(), float(eps.numel())])
    dist.all_reduce(s)
    return (s[0] / s[1]).item()


def main():
    dist.init_process_group("gloo")
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.manual_seed(50 + rank)
    g = torch.Generator().manual_seed(0)
    x = torch.randn(576, 4, generator=g) @ torch.randn(4, 16, generator=g)
    train, held = TensorDataset(x[:512]), x[512:]
    sampler = DistributedSampler(train)
    loader = DataLoader(train, 16, sampler=sampler)
    model = DDP(nn.Sequential(nn.Linear(16, 64), nn.SiLU(), nn.Linear(64, 16)))
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    avg = Averager(model.module, 0.95) if rank == 0 else None
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for (b,) in loader:
            eps = torch.randn_like(b)
            loss = nn.functional.mse_loss(model(b + eps), eps)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if avg is not None:
                avg.update(model.module)
        net = share_from_rank0(avg, model.module)
        v = eval_loss(net, held, rank, world, seed=epoch)
        if rank == 0:
            print(f"epoch {epoch} eval {v:.4f}")
    if rank == 0:
        torch.save(avg.net.state_dict(), "sketch_avg.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
