# -*- coding: utf-8 -*-
# 3D organ segmentation, patch based. Cached volumes, cumulative dice over the whole validation set.
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, Sampler
from torch.utils.data.distributed import DistributedSampler


class SyntheticVolumes(Dataset):
    """Spheres with noise, 12^3 voxels."""

    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        grid = torch.stack(torch.meshgrid(*[torch.arange(12.)] * 3, indexing="ij"))
        c = 4 + 4 * torch.rand(n, 3, 1, 1, 1, generator=g)
        r = 2 + 2 * torch.rand(n, 1, 1, 1, generator=g)
        self.lab = ((grid[None] - c).norm(dim=1) < r).long()
        self.img = (self.lab.float() + 0.4 * torch.randn(n, 12, 12, 12, generator=g))[:, None]

    def __len__(self):
        return len(self.img)

    def __getitem__(self, i):
        return {"image": self.img[i], "label": self.lab[i]}


class ShardSampler(Sampler):
    """every case exactly once, no padding"""

    def __init__(self, ds, rank, world):
        self.idx = list(range(rank, len(ds), world))

    def __iter__(self):
        return iter(self.idx)

    def __len__(self):
        return len(self.idx)


class CumulativeDice:
    def __init__(self):
        self.reset()

    def reset(self):
        self.buffer = []

    def __call__(self, y_pred, y):
        inter = (y_pred * y).flatten(1).sum(1)
        score = 2 * inter / (y_pred.flatten(1).sum(1) + y.flatten(1).sum(1)).clamp(min=1)
        self.buffer.extend(score.tolist())
        return score

    def aggregate(self):
        mine = torch.tensor([sum(self.buffer), float(len(self.buffer))])
        everyone = [torch.zeros(2) for _ in range(dist.get_world_size())]
        dist.all_gather(everyone, mine)
        total = torch.stack(everyone).sum(0)
        return total[0] / total[1]


class TinyUNet(nn.Module):
    def __init__(self, ch=6):
        super().__init__()
        self.enc = nn.Sequential(nn.Conv3d(1, ch, 3, padding=1), nn.InstanceNorm3d(ch, affine=True), nn.PReLU())
        self.down = nn.Conv3d(ch, ch * 2, 2, stride=2)
        self.up = nn.ConvTranspose3d(ch * 2, ch, 2, stride=2)
        self.head = nn.Conv3d(ch * 2, 2, 1)

    def forward(self, x):
        e = self.enc(x)
        u = self.up(torch.relu(self.down(e)))
        return self.head(torch.cat([e, u], 1))


def validate(model, val_loader, dice_metric, epoch):
    model.eval()
    rank = dist.get_rank()
    with torch.no_grad():
        for step, batch in enumerate(val_loader):
            pred = model.module(batch["image"]).argmax(1)
            dice = dice_metric(pred, batch["label"])
            current = dice_metric.aggregate().item()
            if rank == 0:
                print(f"val {epoch} [{step + 1}/{len(val_loader)}] dice {dice.mean():.3f} (so far {current:.3f})", flush=True)
        final = dice_metric.aggregate().item()
    dice_metric.reset()
    return final


def main():
    dist.init_process_group(backend="gloo", init_method="env://")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    train_ds, val_ds = SyntheticVolumes(24, 3), SyntheticVolumes(10, 4)
    train_sampler = DistributedSampler(train_ds, shuffle=True, drop_last=True)
    train_loader = DataLoader(train_ds, batch_size=2, sampler=train_sampler)
    val_loader = DataLoader(val_ds, batch_size=1, sampler=ShardSampler(val_ds, rank, world))
    fit(train_loader, train_sampler, val_loader, rank)
    dist.destroy_process_group()


def fit(train_loader, train_sampler, val_loader, rank):
    model = DDP(TinyUNet())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    dice_metric, best = CumulativeDice(), -1.0
    for epoch in range(3):
        train_sampler.set_epoch(epoch)
        model.train()
        for batch in train_loader:
            loss = F.cross_entropy(model(batch["image"]), batch["label"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        score = validate(model, val_loader, dice_metric, epoch)
        if score > best:
            best = score
            if rank == 0:
                print(f"epoch {epoch}: new best mean dice {best:.4f}", flush=True)


if __name__ == "__main__":
    main()
