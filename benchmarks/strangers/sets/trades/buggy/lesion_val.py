"""Patch classifier for CT lesions. After every epoch the worst missed lesions
of the whole validation set are listed, so that a radiologist can review them.
"""

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler, Subset


class CTPatches(Dataset):
    """3D patches; a patient has several of them. Lesions are faint balls."""

    def __init__(self, patients, per_patient=12, seed=0):
        g = torch.Generator().manual_seed(seed)
        zz, yy, xx = torch.meshgrid(*[torch.arange(8.0)] * 3, indexing="ij")
        ball = (((zz - 3.5) ** 2 + (yy - 3.5) ** 2 + (xx - 3.5) ** 2) < 6).float()
        self.rows = []
        for p in range(patients):
            # the second half of the cohort comes from the screening arm: no lesions
            positive_rate = 0.5 if p < patients // 2 else 0.0
            for k in range(per_patient):
                y = float(torch.rand(1, generator=g) < positive_rate)
                x = torch.randn(1, 8, 8, 8, generator=g) * 0.5
                x = x + y * ball * torch.rand(1, generator=g) * 2.0
                self.rows.append((x, torch.tensor(y), f"pat{p:02d}/{k:02d}"))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


class Net3D(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv3d(1, 8, 3, padding=1)
        self.c2 = nn.Conv3d(8, 16, 3, stride=2, padding=1)
        self.fc = nn.Linear(16, 1)

    def forward(self, x):
        x = F.relu(self.c2(F.relu(self.c1(x))))
        return self.fc(x.amax(dim=(2, 3, 4))).squeeze(1)


def train_epoch(model, loader, opt):
    model.train()
    for x, y, _ in loader:
        opt.zero_grad()
        loss = F.binary_cross_entropy_with_logits(model(x), y)
        loss.backward()
        opt.step()


@torch.no_grad()
def validate(model, loader):
    model.eval()
    stats = torch.zeros(3)  # loss, correct, n
    missed = []
    for x, y, names in loader:
        logit = model(x)
        stats[0] += F.binary_cross_entropy_with_logits(logit, y, reduction="sum")
        stats[1] += ((logit > 0) == (y > 0.5)).sum()
        stats[2] += len(x)
        prob = logit.sigmoid()
        for i in ((y > 0.5) & (prob < 0.5)).nonzero().flatten().tolist():
            missed.append((prob[i].item(), names[i]))

    if missed:
        parts = [None] * dist.get_world_size()
        dist.all_gather_object(parts, missed)
        missed = sorted(m for part in parts for m in part)
    dist.all_reduce(stats)
    return stats[0] / stats[2], stats[1] / stats[2], missed


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)

    train_set = CTPatches(16, seed=1)
    val_set = CTPatches(8, seed=2)
    sampler = DistributedSampler(train_set, seed=4)
    train_loader = DataLoader(train_set, batch_size=8, sampler=sampler)
    # patients must stay on one rank, patch order matters for the report
    share = len(val_set) // world
    val_part = Subset(val_set, range(rank * share, (rank + 1) * share))
    val_loader = DataLoader(val_part, batch_size=16)

    model = DistributedDataParallel(Net3D())
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)

    for epoch in range(3):
        sampler.set_epoch(epoch)
        train_epoch(model, train_loader, opt)
        loss, acc, missed = validate(model, val_loader)
        if rank == 0:
            print(f"epoch {epoch} val loss {loss:.3f} acc {acc:.3f} missed {len(missed)}", flush=True)
            for prob, name in missed[:3]:
                print(f"    {name} p={prob:.3f}", flush=True)

    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
