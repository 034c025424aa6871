"""Action recognition on synthetic clips; frames are decoded in loader processes.

The decoder library is not fork-safe, so the loader starts its processes with `spawn`."""
import argparse
import os
import random

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

MOTIONS = ("left", "right", "up", "down")


def setup():
    dist.init_process_group("gloo")
    torch.manual_seed(0)


def get_rank():
    return dist.get_rank()


def get_world_size():
    return dist.get_world_size()


def is_main():
    return get_rank() == 0


def render(uid, frames=8, size=12):
    """A bright square that moves in one of four directions."""
    g = torch.Generator().manual_seed(uid)
    label = uid % len(MOTIONS)
    dx, dy = ((-1, 0), (1, 0), (0, -1), (0, 1))[label]
    x, y = (int(v) for v in torch.randint(3, 7, (2,), generator=g))
    clip = 0.2 * torch.randn(1, frames, size, size, generator=g)
    for t in range(frames):
        xx, yy = (x + dx * t) % size, (y + dy * t) % size
        clip[0, t, yy:yy + 2, xx:xx + 2] += 1.0
    return clip, label


class ClipStream(IterableDataset):
    """Streams the catalogue in a new order each epoch; readers take every k-th clip."""

    def __init__(self, catalogue, stride=1, seed=0):
        self.catalogue, self.stride, self.seed = list(catalogue), stride, seed
        self.rank, self.world = get_rank(), get_world_size()
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def reader(self):
        info = get_worker_info()
        workers, wid = (info.num_workers, info.id) if info else (1, 0)
        return self.rank * workers + wid, self.world * workers

    def order(self):
        ids = list(self.catalogue)
        random.Random(self.seed + self.epoch).shuffle(ids)
        return ids

    def __iter__(self):
        reader, readers = self.reader()
        for uid in self.order()[reader::readers]:
            clip, label = render(uid)
            yield clip[:, ::self.stride], label


class C3D(nn.Module):
    def __init__(self, classes=len(MOTIONS)):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv3d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool3d((1, 2, 2)),
            nn.Conv3d(8, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool3d((4, 3, 3)))
        self.fc = nn.Linear(16 * 36, classes)

    def forward(self, x):
        return self.fc(self.conv(x).flatten(1))


def make_loader(catalogue, batch, workers):
    stream = ClipStream(catalogue)
    kwargs = dict(multiprocessing_context="spawn") if workers else {}
    return stream, DataLoader(stream, batch, num_workers=workers, drop_last=True, **kwargs)


def run_epoch(model, loader, opt):
    tally = torch.zeros(3)
    for clip, label in loader:
        logits = model(clip)
        loss = F.cross_entropy(logits, label)
        opt.zero_grad()
        loss.backward()
        opt.step()
        tally += torch.tensor([loss.item() * len(label), float((logits.argmax(1) == label).sum()), float(len(label))])
    dist.all_reduce(tally)
    return (tally[0] / tally[2]).item(), (tally[1] / tally[2]).item()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--batch", type=int, default=8)
    p.add_argument("--workers", type=int, default=int(os.environ.get("CLIP_WORKERS", 1)))
    args = p.parse_args()
    setup()
    stream, loader = make_loader(range(128), args.batch, args.workers)
    model = DDP(C3D())
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(args.epochs):
        stream.set_epoch(epoch)
        loss, acc = run_epoch(model, loader, opt)
        if is_main():
            print(f"epoch {epoch} loss {loss:.4f} acc {acc:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
