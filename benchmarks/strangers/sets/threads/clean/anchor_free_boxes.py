"""Anchor-free detector on synthetic blobs: one class map and one box map per cell."""
import math
from typing import NamedTuple

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class Hyp(NamedTuple):
    size: int = 32
    stride: int = 4
    epochs: int = 2
    batch: int = 4
    lr: float = 0.01
    gain_cls: float = 1.0
    gain_box: float = 2.0


HYP = Hyp()


class BlobSet(Dataset):
    """Satellite-like tiles; most of the later tiles are open water."""

    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        img = 0.1 * torch.randn(1, HYP.size, HYP.size, generator=g)
        count = 1 + i % 3 if i < self.n // 2 else 0
        boxes = torch.zeros(count, 4)
        for k in range(count):
            x, y = torch.randint(3, HYP.size - 11, (2,), generator=g).tolist()
            w, h = torch.randint(3, 9, (2,), generator=g).tolist()
            img[:, y:y + h, x:x + w] += 1.0
            boxes[k] = torch.tensor([x, y, x + w, y + h])
        return img, boxes


def collate(items):
    return torch.stack([i for i, _ in items]), [b for _, b in items]


class Head(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.cls = nn.Sequential(nn.Conv2d(c, c, 3, padding=1), nn.SiLU(), nn.Conv2d(c, 1, 1))
        self.reg = nn.Sequential(nn.Conv2d(c, c, 3, padding=1), nn.SiLU(), nn.Conv2d(c, 4, 1))
        nn.init.constant_(self.cls[-1].bias, -math.log(99))

    def forward(self, f):
        return self.cls(f), self.reg(f)


class Detector(nn.Module):
    def __init__(self, c=16):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(1, c, 3, 2, 1), nn.SiLU(), nn.Conv2d(c, c, 3, 2, 1), nn.SiLU())
        self.head = Head(c)

    def forward(self, x):
        return self.head(self.backbone(x))


class DetectionLoss:
    def __init__(self, hyp):
        self.h = hyp

    def assign(self, boxes, shape):
        n = self.h.size // self.h.stride
        fg = torch.zeros(shape, n, n, dtype=torch.bool)
        target = torch.zeros(shape, 4, n, n)
        for b, bx in enumerate(boxes):
            for x1, y1, x2, y2 in bx.tolist():
                cx, cy = int((x1 + x2) / 2 // self.h.stride), int((y1 + y2) / 2 // self.h.stride)
                fg[b, cy, cx] = True
                target[b, :, cy, cx] = torch.tensor([x1, y1, x2, y2]) / self.h.size
        return fg, target

    def __call__(self, preds, boxes):
        cls, reg = preds
        fg, target = self.assign(boxes, len(cls))
        items = torch.zeros(2)
        loss_cls = F.binary_cross_entropy_with_logits(cls.squeeze(1), fg.float())
        total = self.h.gain_cls * loss_cls
        if fg.any():
            mask = fg[:, None].expand_as(reg)
            loss_box = F.smooth_l1_loss(reg[mask], target[mask])
            total = total + self.h.gain_box * loss_box
            items[1] = loss_box.detach()
        else:
            total = total + reg.sum() * 0
        items[0] = loss_cls.detach()
        return total, items


def train():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    data = BlobSet(64)
    sampler = DistributedSampler(data, shuffle=False)
    loader = DataLoader(data, HYP.batch, sampler=sampler, collate_fn=collate)
    model = DDP(Detector())
    criterion = DetectionLoss(HYP)
    optimizer = torch.optim.AdamW(model.parameters(), lr=HYP.lr)
    for epoch in range(HYP.epochs):
        mean = torch.zeros(2)
        for i, (imgs, boxes) in enumerate(loader):
            loss, items = criterion(model(imgs), boxes)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            mean = (mean * i + items) / (i + 1)
        if dist.get_rank() == 0:
            print(f"epoch {epoch} cls {mean[0].item():.4f} box {mean[1].item():.4f}", flush=True)
    del model
    dist.destroy_process_group()


if __name__ == "__main__":
    train()
