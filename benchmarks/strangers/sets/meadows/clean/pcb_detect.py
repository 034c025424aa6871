"""Solder defect heat map detector for circuit board crops."""
import argparse

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class BoardCrops(Dataset):
    def __init__(self, crops, side=20, seed=0, defect_rate=0.3):
        self.crops, self.side, self.seed, self.rate = crops, side, seed, defect_rate

    def __len__(self):
        return self.crops

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed * 7919 + i)
        img = 0.1 * torch.randn(1, self.side, self.side, generator=g)
        count = int(torch.rand((), generator=g) < self.rate) * int(torch.randint(1, 4, (), generator=g))
        boxes = torch.randint(2, self.side - 2, (count, 2), generator=g)
        for y, x in boxes.tolist():
            img[0, y - 1 : y + 2, x - 1 : x + 2] += 1.0
        return img, boxes


def collate(items):
    return torch.stack([i for i, _ in items]), [b for _, b in items]


class HeatNet(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1), nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1), nn.ReLU(),
        )
        self.heat = nn.Conv2d(width, 1, 1)
        self.offset = nn.Conv2d(width, 2, 1)

    def forward(self, img):
        h = self.body(img)
        return self.heat(h).squeeze(1), self.offset(h)


def heat_targets(boxes, side):
    out = torch.zeros(len(boxes), side, side)
    for k, b in enumerate(boxes):
        out[k, b[:, 0], b[:, 1]] = 1
    return out


def detection_loss(heat, offset, boxes):
    target = heat_targets(boxes, heat.shape[-1])
    positives = sum(len(b) for b in boxes)
    focal = F.binary_cross_entropy_with_logits(heat, target, reduction="sum") / max(1, positives)
    away = offset.pow(2).sum(1)[target > 0].sum() / max(1, positives)
    return focal + 0.1 * away


def fit(model, loader, opt, epoch, quiet):
    used = 0
    total = 0.0
    for img, boxes in loader:
        heat, offset = model(img)
        loss = detection_loss(heat, offset, boxes)
        opt.zero_grad()
        loss.backward()
        opt.step()
        used += 1
        total += loss.item()
    if not quiet:
        print(f"epoch {epoch}: {used} batches, loss {total / max(1, used):.3f}", flush=True)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--crops", type=int, default=96)
    ap.add_argument("--batch", type=int, default=4)
    ap.add_argument("--epochs", type=int, default=3)
    args = ap.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    data = BoardCrops(args.crops)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, args.batch, sampler=sampler, collate_fn=collate)
    model = DDP(HeatNet())
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        fit(model, loader, opt, epoch, dist.get_rank() != 0)
        dist.barrier()
    if dist.get_rank() == 0:
        torch.save(model.module.state_dict(), "heatnet.pt")


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
