"""Temperature downscaling; the learning rate follows the number of samples seen by all processes together."""
import argparse
import math

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class SampleCosine:
    def __init__(self, opt, peak, total_samples):
        self.opt, self.peak, self.total, self.seen = opt, peak, total_samples, 0

    def advance(self, n):
        self.seen += n
        lr = 0.5 * self.peak * (1 + math.cos(math.pi * min(1.0, self.seen / self.total)))
        for g in self.opt.param_groups:
            g["lr"] = lr
        return lr


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=5)
    ap.add_argument("--batch", type=int, default=8)
    ap.add_argument("--lr", type=float, default=5e-3)
    a = ap.parse_args()
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    torch.manual_seed(1)
    world = dist.get_world_size()
    fine = nn.functional.interpolate(torch.randn(128, 1, 4, 4), size=12, mode="bilinear")
    data = TensorDataset(nn.functional.avg_pool2d(fine, 2), fine)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, a.batch, sampler=sampler)
    net = DDP(nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(),
                            nn.Conv2d(8, 1, 3, padding=1)))
    opt = torch.optim.AdamW(net.parameters(), a.lr)
    clock = SampleCosine(opt, a.lr, a.epochs * len(data))
    for epoch in range(a.epochs):
        sampler.set_epoch(epoch)
        for coarse, target in loader:
            loss = (net(coarse) - target).abs().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            lr = clock.advance(len(coarse) * world)
        if dist.get_rank() == 0:
            print(f"epoch {epoch} mae {loss.item():.4f} lr {lr:.2e}", flush=True)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
