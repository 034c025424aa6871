"""Siamese change detection on longitudinal MRI slices.

    torchrun --nproc_per_node=2 brain_mri.py
"""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class VisitPairs(Dataset):
    """Two visits of one patient; label 1 when a lesion appeared in between."""

    def __init__(self, n=160, size=24):
        g = torch.Generator().manual_seed(3)
        self.first = torch.randn(n, 1, size, size, generator=g)
        self.second = self.first + 0.2 * torch.randn(n, 1, size, size, generator=g)
        self.changed = (torch.rand(n, generator=g) < 0.5).float()
        for i in torch.nonzero(self.changed).flatten().tolist():
            r, c = torch.randint(2, size - 6, (2,), generator=g).tolist()
            self.second[i, 0, r:r + 4, c:c + 4] += 2.5

    def __len__(self):
        return len(self.changed)

    def __getitem__(self, i):
        return self.first[i], self.second[i], self.changed[i]


def block(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU())


class Encoder(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.layers = nn.Sequential(block(1, 8), block(8, 16))
        self.project = nn.Linear(16, dim)

    def forward(self, x):
        return self.project(self.layers(x).amax((2, 3)))


class ContrastiveDistance(nn.Module):
    def __init__(self, margin=1.5):
        super().__init__()
        self.margin = margin

    def forward(self, a, b, changed):
        d = F.pairwise_distance(a, b)
        return (changed * F.relu(self.margin - d) ** 2 + (1 - changed) * d ** 2).mean(), d


def train(epochs=2):
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    pairs = VisitPairs()
    sampler = DistributedSampler(pairs)
    loader = DataLoader(pairs, 16, sampler=sampler, drop_last=True)
    enc = DDP(Encoder())
    crit = ContrastiveDistance()
    opt = torch.optim.AdamW(enc.parameters(), lr=2e-3)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        right = seen = 0
        for first, second, changed in loader:
            za = enc(first)
            zb = enc(second)
            loss, d = crit(za, zb, changed)
            opt.zero_grad()
            loss.backward()
            opt.step()
            right += ((d > 0.75).float() == changed).sum().item()
            seen += len(d)
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.3f} local acc {right / seen:.3f}")


if __name__ == "__main__":
    train()
    dist.destroy_process_group()
