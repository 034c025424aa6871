"""Reef fish classification from hydrophone features, a cut-down version of our field pipeline.

    torchrun --nproc_per_node=3 reef_species.py
"""
import csv
import io
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

FISH = ["lutjanus_bohar", "chaetodon_lunula", "scarus_rubro", "naso_lituratus", "zebrasoma_flavescens", "epinephelus_merra"]


def annotation_table(n=720):
    """The csv that the annotators deliver (one row a recording)."""
    g = torch.Generator().manual_seed(77)
    out = io.StringIO()
    w = csv.writer(out)
    w.writerow(["record", "species"] + [f"f{j}" for j in range(16)])
    centre = 1.6 * torch.randn(len(FISH), 16, generator=g)
    for i in range(n):
        k = int(torch.randint(len(FISH), (1,), generator=g))
        feats = centre[k] + torch.randn(16, generator=g)
        w.writerow([f"rec{i:04d}", FISH[k]] + [f"{v:.4f}" for v in feats.tolist()])
    return out.getvalue()


class LabelEncoder:
    def __init__(self, names):
        self.classes = sorted({n for n in names})
        self.index = {c: i for i, c in enumerate(self.classes)}

    def __len__(self):
        return len(self.classes)

    def encode(self, name):
        return self.index[name]


class Recordings(Dataset):
    def __init__(self, text, part, encoder=None):
        rows = list(csv.DictReader(io.StringIO(text)))
        cut = int(0.8 * len(rows))
        rows = rows[:cut] if part == "train" else rows[cut:]
        self.encoder = encoder or LabelEncoder(r["species"] for r in rows)
        self.items = [
            (torch.tensor([float(r[f"f{j}"]) for j in range(16)]), self.encoder.encode(r["species"])) for r in rows
        ]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def accuracy(model, loader):
    hit = torch.zeros(2)
    model.eval()
    with torch.no_grad():
        for x, y in loader:
            hit[0] += (model(x).argmax(1) == y).sum()
            hit[1] += len(y)
    model.train()
    dist.all_reduce(hit)
    return (hit[0] / hit[1]).item()


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    torch.manual_seed(42)

    text = annotation_table()
    train = Recordings(text, "train")
    test = Recordings(text, "test", train.encoder)
    sampler = DistributedSampler(train, seed=9)
    loader = DataLoader(train, batch_size=16, sampler=sampler)
    test_loader = DataLoader(test, batch_size=48, sampler=DistributedSampler(test, shuffle=False))

    model = DDP(nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, len(train.encoder))))
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(6):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        acc = accuracy(model.module, test_loader)
        if rank == 0:
            print(f"epoch {epoch} accuracy {acc:.3f}")
    if rank == 0:
        torch.save({"model": model.module.state_dict(), "classes": train.encoder.classes}, os.devnull)
    dist.barrier()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
