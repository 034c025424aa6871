"""Finds pallets in depth images: tiny one-box detector, evaluated on all processes (results merged on the first)."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, Subset

EPOCHS, BATCH, LR, TRAIN, VAL = 4, 16, 3e-3, 384, 90


class DepthImages(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        wh = torch.randint(4, 10, (n, 2), generator=g)
        xy = (torch.rand(n, 2, generator=g) * (24 - wh)).long()
        self.box = torch.cat([xy, xy + wh], 1).float()
        self.noise = torch.randn(n, 1, 24, 24, generator=g) * 0.3

    def __len__(self):
        return len(self.box)

    def __getitem__(self, i):
        img = self.noise[i].clone()
        x0, y0, x1, y1 = self.box[i].long().tolist()
        img[:, y0:y1, x0:x1] += 1.5
        return img, self.box[i] / 24


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(1, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(),
                                 nn.Flatten(), nn.Linear(32 * 36, 64), nn.ReLU(), nn.Linear(64, 4))

    def forward(self, x):
        return self.net(x)


def iou(a, b):
    lt, rb = torch.max(a[:, :2], b[:, :2]), torch.min(a[:, 2:], b[:, 2:])
    inter = (rb - lt).clamp_min(0).prod(1)
    area = lambda t: (t[:, 2:] - t[:, :2]).clamp_min(0).prod(1)
    return inter / (area(a) + area(b) - inter + 1e-9)


def deal(data, rank, world):
    return Subset(data, range(rank, len(data), world))


class BoxEvaluator:
    def __init__(self):
        self.predictions = {}

    def update(self, outputs):
        self.predictions.update(outputs)

    def synchronize(self):
        parts = [None] * dist.get_world_size() if dist.get_rank() == 0 else None
        dist.gather_object(self.predictions, parts)
        if parts is not None:
            self.predictions = {k: v for part in parts for k, v in part.items()}

    def summarize(self):
        ious = torch.stack([iou(p[None], t[None])[0] for p, t in self.predictions.values()])
        return ious.mean().item(), (ious > 0.5).float().mean().item(), len(ious)


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    ev, image_id = BoxEvaluator(), dist.get_rank()
    for images, targets in loader:
        boxes = model(images)
        out = {}
        for box, target in zip(boxes, targets):
            out[image_id] = (box, target)
            image_id += dist.get_world_size()
        ev.update(out)
    ev.synchronize()
    return ev


def main():
    dist.init_process_group("gloo")
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.manual_seed(0)
    model = DistributedDataParallel(Detector())
    opt = torch.optim.Adam(model.parameters(), lr=LR)
    train = DataLoader(deal(DepthImages(TRAIN, 1), rank, world), BATCH, shuffle=True, drop_last=True)
    val = DataLoader(deal(DepthImages(VAL, 2), rank, world), BATCH)
    for epoch in range(EPOCHS):
        model.train()
        for images, targets in train:
            loss = nn.functional.smooth_l1_loss(model(images), targets)
            opt.zero_grad()
            loss.backward()
            opt.step()
        ev = evaluate(model.module, val)
        if rank == 0:
            print("epoch %d: mean IoU %.3f, recall@.5 %.3f (%d images)" % (epoch, *ev.summarize()), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
