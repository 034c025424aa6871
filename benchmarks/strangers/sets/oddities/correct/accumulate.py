"""Accumulates over 4 micro-batches, syncs on the last one of each group, also of the short one at the end."""
import contextlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

ACCUM = 4


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(9)
    x = torch.randn(176, 7, generator=g)
    ds = TensorDataset(x, x.abs().sum(1, keepdim=True))
    sampler = DistributedSampler(ds)
    loader = DataLoader(ds, batch_size=8, sampler=sampler)
    net = DDP(nn.Sequential(nn.Linear(7, 20), nn.ReLU(), nn.Linear(20, 1)))
    opt = torch.optim.Adam(net.parameters(), lr=1e-2)
    n = len(loader)
    for epoch in range(4):
        sampler.set_epoch(epoch)
        opt.zero_grad()
        for i, (a, b) in enumerate(loader):
            last = (i + 1) % ACCUM == 0 or i + 1 == n
            group = min(ACCUM, n - i // ACCUM * ACCUM)
            with contextlib.nullcontext() if last else net.no_sync():
                loss = nn.functional.mse_loss(net(a), b)
                (loss / group).backward()
            if last:
                nn.utils.clip_grad_norm_(net.parameters(), 5.0)
                opt.step()
                opt.zero_grad()
        if dist.get_rank() == 0:
            print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
