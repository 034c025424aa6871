"""Land cover segmentation; validation keeps intersection and union per class."""
import time
from collections import OrderedDict

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

CLASSES = ["water", "forest", "crop", "urban", "bare", "snow", "wetland", "road", "shrub", "cloud"]


def tiles(n, seed, size=16):
    g = torch.Generator().manual_seed(seed)
    colour = torch.randn(len(CLASSES), 4, generator=torch.Generator().manual_seed(0))
    coarse = torch.randint(0, len(CLASSES), (n, size // 4, size // 4), generator=g)
    mask = coarse.repeat_interleave(4, 1).repeat_interleave(4, 2)
    return colour[mask].permute(0, 3, 1, 2) + 0.5 * torch.randn(n, 4, size, size, generator=g), mask


def batch_metrics(logits, mask):
    guess = logits.argmax(1)
    out = OrderedDict()
    for k, name in enumerate(CLASSES):
        out[f"inter/{name}"] = ((guess == k) & (mask == k)).sum().float()
        out[f"union/{name}"] = ((guess == k) | (mask == k)).sum().float()
        out[f"pixels/{name}"] = (mask == k).sum().float()
    return out


@torch.no_grad()
def validate(net, data, batch=1):
    net.eval()
    x, y = data
    totals = OrderedDict()
    for i in range(0, len(x), batch):
        metrics = batch_metrics(net(x[i:i + batch]), y[i:i + batch])
        for key, value in metrics.items():
            totals[key] = totals.get(key, 0.0) + value
    flat = torch.stack(list(totals.values()))
    dist.all_reduce(flat)
    totals = dict(zip(totals, flat.tolist()))
    net.train()
    return {n: totals[f"inter/{n}"] / max(totals[f"union/{n}"], 1.0) for n in CLASSES}


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(4, 24, 3, padding=1), nn.ReLU(), nn.Conv2d(24, len(CLASSES), 1))
    ddp = DDP(net)
    opt = torch.optim.Adam(ddp.parameters(), lr=5e-3)
    train, val = tiles(64, seed=1 + rank), tiles(300, seed=70 + rank)
    for epoch in range(2):
        for i in range(0, 64, 8):
            loss = nn.functional.cross_entropy(ddp(train[0][i:i + 8]), train[1][i:i + 8])
            opt.zero_grad()
            loss.backward()
            opt.step()
        began = time.perf_counter()
        iou = validate(net, val)
        if rank == 0:
            took = time.perf_counter() - began
            print(f"epoch {epoch} mIoU {sum(iou.values()) / len(iou):.3f} validation {took:.1f} s", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
