"""Part segmentation of toy point clouds, PointNet style, per-category IoU at the end of an epoch."""
import argparse
from collections import OrderedDict

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, Subset
from torch.utils.data.distributed import DistributedSampler

SEG_CLASSES = OrderedDict(mug=[0, 1], lamp=[2, 3], rocket=[4, 5])
N_PARTS = 6


class ToyParts(Dataset):
    """Two clusters of points per shape. The file list is grouped by category."""

    def __init__(self, counts, points=64, seed=0):
        self.points, self.seed = points, seed
        self.files = [(cat, i) for cat, n in counts.items() for i in range(n)]

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        cat, i = self.files[index]
        c = list(SEG_CLASSES).index(cat)
        g = torch.Generator().manual_seed(self.seed + 997 * c + i)
        part = torch.randint(0, 2, (self.points,), generator=g)
        center = torch.tensor([[0.0, 0.0, c], [1.0, 0.3 * c, c + 0.5]])
        xyz = center[part] + 0.25 * torch.randn(self.points, 3, generator=g)
        return xyz, c, part + 2 * c


class PointNetSeg(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.local = nn.Sequential(nn.Conv1d(3, width, 1), nn.ReLU(), nn.Conv1d(width, width, 1), nn.ReLU())
        self.globl = nn.Sequential(nn.Conv1d(width, 2 * width, 1), nn.ReLU())
        self.head = nn.Sequential(
            nn.Conv1d(3 * width + len(SEG_CLASSES), width, 1), nn.ReLU(), nn.Conv1d(width, N_PARTS, 1))

    def forward(self, xyz, cat):
        h = self.local(xyz.transpose(1, 2))
        g = self.globl(h).amax(2, keepdim=True).expand(-1, -1, h.shape[2])
        onehot = F.one_hot(cat, len(SEG_CLASSES)).float().unsqueeze(2).expand(-1, -1, h.shape[2])
        return self.head(torch.cat([h, g, onehot], 1))


def shape_iou(pred, target, parts):
    scores = []
    for p in parts:
        inter = ((pred == p) & (target == p)).sum().item()
        union = ((pred == p) | (target == p)).sum().item()
        scores.append(1.0 if union == 0 else inter / union)
    return sum(scores) / len(scores)


class IoUBook:
    """Shape IoUs filed under their category."""

    def __init__(self):
        self.pages = {cat: [] for cat in SEG_CLASSES}

    def add(self, cat, value):
        self.pages[cat].append(value)

    def close(self):
        """Category means over the whole test set, whoever evaluated the shapes."""
        result = {}
        for cat, values in self.pages.items():
            row = torch.tensor([sum(values), len(values)], dtype=torch.float64)
            dist.all_reduce(row)
            total, n = row.tolist()
            result[cat] = total / max(n, 1)
        result["mean"] = sum(result.values()) / len(result)
        return result


@torch.no_grad()
def test(net, loader):
    net.eval()
    book = IoUBook()
    names = list(SEG_CLASSES)
    for xyz, cat, seg in loader:
        logits = net(xyz, cat)
        for b in range(len(cat)):
            parts = SEG_CLASSES[names[cat[b]]]
            pred = logits[b, parts].argmax(0) + parts[0]
            book.add(names[cat[b]], shape_iou(pred, seg[b], parts))
    net.train()
    return book.close()


def train_epoch(model, loader, opt):
    for xyz, cat, seg in loader:
        turn = torch.rand(()) * 0.2
        xyz = xyz + torch.stack([turn, -turn, turn * 0])
        loss = F.cross_entropy(model(xyz, cat), seg)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()


def split(dataset, rank, world):
    """A contiguous piece for each process, so that nothing is counted twice."""
    share = -(-len(dataset) // world)
    return Subset(dataset, range(rank * share, min((rank + 1) * share, len(dataset))))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--batch", type=int, default=8)
    p.add_argument("--lr", type=float, default=4e-3)
    args = p.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    train_set = ToyParts(OrderedDict(mug=40, lamp=40, rocket=16))
    test_set = ToyParts(OrderedDict(mug=20, lamp=20, rocket=6), seed=10_000)
    sampler = DistributedSampler(train_set)
    train_loader = DataLoader(train_set, args.batch, sampler=sampler, drop_last=True)
    test_loader = DataLoader(split(test_set, rank, world), args.batch)
    net = PointNetSeg()
    model = DDP(net)
    torch.manual_seed(1 + rank)
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        loss = train_epoch(model, train_loader, opt)
        iou = test(net, test_loader)
        if rank == 0:
            print(f"epoch {epoch} loss {loss:.3f} " + " ".join(f"{k} {v:.3f}" for k, v in iou.items()), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
