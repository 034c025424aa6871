"""Cloud masks from geostationary imagery (two satellites, two processes)."""
import os
import sys

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

STEPS, EVAL_EVERY, BATCH = 18, 6, 12


def conv(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU())


class MaskNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = conv(4, 12)
        self.mid = conv(12, 12)
        self.out = nn.Conv2d(12, 1, 1)

    def forward(self, x):
        return self.out(self.mid(self.stem(x)))


class Satellite:
    def __init__(self, rank, seed=0):
        self.g = torch.Generator().manual_seed(seed + 7 * rank)
        self.gain, self.bias = 1.0 + 0.4 * rank, 0.3 * rank

    def scene(self, n):
        cloud = (torch.randn(n, 1, 4, 4, generator=self.g) > 0.3).float()
        cloud = nn.functional.interpolate(cloud, size=16, mode="nearest")
        x = cloud * torch.tensor([1.0, 0.8, -0.5, 0.2]).view(1, 4, 1, 1)
        x = self.gain * (x + 0.6 * torch.randn(n, 4, 16, 16, generator=self.g)) + self.bias
        return x, cloud


@torch.no_grad()
def merge_statistics(net):
    world = dist.get_world_size()
    for m in net.modules():
        if isinstance(m, nn.BatchNorm2d):
            mean, var = m.running_mean, m.running_var
            both = torch.stack([mean, var + mean.pow(2)])
            dist.all_reduce(both)
            both /= world
            mean.copy_(both[0])
            var.copy_(both[1] - both[0].pow(2))


@torch.no_grad()
def evaluate(model, satellite):
    net = model.module
    merge_statistics(net)
    net.eval()
    x, y = satellite.scene(16)
    hit = ((net(x) > 0) == (y > 0.5)).float().mean()
    net.train()
    dist.all_reduce(hit)
    return hit.item() / dist.get_world_size()


def main():
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    rank = int(os.environ["RANK"])
    torch.manual_seed(0)
    model = DDP(MaskNet(), broadcast_buffers=False)
    opt = torch.optim.Adam(model.parameters(), lr=4e-3)
    source, held = Satellite(rank), Satellite(rank, seed=1000)
    for step in range(1, STEPS + 1):
        x, y = source.scene(BATCH)
        loss = nn.functional.binary_cross_entropy_with_logits(model(x), y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % EVAL_EVERY == 0:
            acc = evaluate(model, held)
            if rank == 0:
                print(f"step {step} loss {loss.item():.3f} accuracy {acc:.3f}", flush=True)
    if rank != 0:
        dist.destroy_process_group()
        sys.exit(0)
    torch.save(model.module.state_dict(), "/tmp/cloud_masks.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
