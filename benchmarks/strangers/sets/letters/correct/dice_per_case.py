"""Lesion segmentation; Dice is by definition the mean over cases here, and every process holds as many cases."""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def cases(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.zeros(n, 1, 14, 14)
    for i in range(n):
        a, b, s = (int(torch.randint(lo, hi, (1,), generator=g)) for lo, hi in ((0, 8), (0, 8), (3, 6)))
        y[i, 0, a:a + s, b:b + s] = 1
    return TensorDataset(y + 0.5 * torch.randn(y.shape, generator=g), y)


def dice(p, y):
    p = (p > 0).float()
    return 2 * (p * y).sum((1, 2, 3)) / (p.sum((1, 2, 3)) + y.sum((1, 2, 3))).clamp(min=1)


def main():
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    world = dist.get_world_size()
    train, val = cases(48, 1), cases(24, 2)
    assert len(val) % world == 0
    sampler = DistributedSampler(train)
    loader = DataLoader(train, 8, sampler=sampler)
    net = nn.parallel.DistributedDataParallel(
        nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 3, padding=1)))
    opt = torch.optim.Adam(net.parameters(), 3e-2)
    for epoch in range(14):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = F.binary_cross_entropy_with_logits(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
    with torch.no_grad():
        scores = torch.cat([dice(net.module(x), y) for x, y in
                            DataLoader(val, 4, sampler=DistributedSampler(val, shuffle=False))])
    mean = scores.mean()
    dist.all_reduce(mean)
    mean /= world
    if dist.get_rank() == 0:
        print(f"Dice per case {mean.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
