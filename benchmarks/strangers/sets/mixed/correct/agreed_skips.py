"""Bad batches are skipped by common consent; logging reduces only every few steps."""
import math

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

LOG_EVERY = 5


def any_rank(flag):
    t = torch.tensor(float(flag))
    dist.all_reduce(t, op=dist.ReduceOp.MAX)
    return bool(t.item())


def dataset():
    g = torch.Generator().manual_seed(2)
    x = torch.randn(120, 4, generator=g)
    y = x.pow(2).sum(1, keepdim=True)
    y[torch.randperm(120, generator=g)[:3]] = math.nan
    return TensorDataset(x, y)


def train():
    rank, world = dist.get_rank(), dist.get_world_size()
    data = dataset()
    sampler = DistributedSampler(data, seed=1, drop_last=True)
    loader = DataLoader(data, batch_size=6, sampler=sampler)
    torch.manual_seed(5)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1)))
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    step = skipped = 0
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x, y in loader:
            if any_rank(torch.isnan(y).any().item()):
                skipped += 1
                continue
            loss = nn.functional.mse_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            opt.step()
            step += 1
            if step % LOG_EVERY == 0:
                shown = torch.stack([loss.detach(), norm]) / world
                dist.reduce(shown, dst=0)
                if rank == 0:
                    print(f"step {step} loss {shown[0]:.3f} norm {shown[1]:.3f} skipped {skipped}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train()
    dist.destroy_process_group()
