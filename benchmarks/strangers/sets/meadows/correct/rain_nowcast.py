"""Radar rain nowcasting; validation images are only looked at by the first process."""
import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Radar(Dataset):
    """A blob of rain drifting with constant wind."""

    def __init__(self, count, size=16, frames=4, seed=0):
        self.count, self.size, self.frames, self.seed = count, size, frames, seed

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed + i)
        pos = torch.rand(2, generator=g) * self.size
        wind = torch.randn(2, generator=g)
        yy, xx = torch.meshgrid(torch.arange(self.size), torch.arange(self.size), indexing="ij")
        seq = []
        for t in range(self.frames + 1):
            c = pos + t * wind
            seq.append(torch.exp(-((yy - c[0]) ** 2 + (xx - c[1]) ** 2) / 8))
        seq = torch.stack(seq)
        return seq[:-1], seq[-1:]


def network(frames=4):
    return nn.Sequential(
        nn.Conv2d(frames, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 1, 3, padding=1)
    )


@torch.no_grad()
def critical_success(net, loader, threshold=0.3):
    """Runs on one process with the bare module; touches no other process."""
    net.eval()
    hit = miss = false = 0
    for past, future in loader:
        guess, truth = net(past) > threshold, future > threshold
        hit += (guess & truth).sum().item()
        miss += (~guess & truth).sum().item()
        false += (guess & ~truth).sum().item()
    net.train()
    return hit / max(1, hit + miss + false)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=4)
    ap.add_argument("--train", type=int, default=96)
    args = ap.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    data = Radar(args.train)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, 8, sampler=sampler)
    ddp = DDP(network())
    opt = torch.optim.Adam(ddp.parameters(), lr=1e-2)
    val = DataLoader(Radar(24, seed=5000), 8) if rank == 0 else None
    best = -1.0
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for past, future in loader:
            opt.zero_grad()
            nn.functional.mse_loss(ddp(past), future).backward()
            opt.step()
        if rank == 0:
            csi = critical_success(ddp.module, val)
            print(f"epoch {epoch} csi {csi:.3f}", flush=True)
            if csi > best:
                best = csi
                torch.save(ddp.module.state_dict(), "nowcast.tmp")
                os.replace("nowcast.tmp", "nowcast.pt")
    dist.barrier()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
