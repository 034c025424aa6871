import torch
from torch.utils.data import Dataset


class Clusters(Dataset):
    """Clusters of 2 to 14 atoms, harmonic-ish reference forces."""

    def __init__(self, n=160, seed=6):
        g = torch.Generator().manual_seed(seed)
        self.frames = []
        for _ in range(n):
            k = int(torch.randint(2, 15, (1,), generator=g))
            pos = torch.randn(k, 3, generator=g)
            rel = pos[:, None] - pos[None]
            force = (rel / (1 + rel.pow(2).sum(-1, keepdim=True))).sum(1)
            self.frames.append((pos, force, 0.5 * force.pow(2).sum().sqrt()))

    def __len__(self):
        return len(self.frames)

    def __getitem__(self, i):
        return self.frames[i]


def collate(items):
    pos = torch.cat([p for p, _, _ in items])
    force = torch.cat([f for _, f, _ in items])
    energy = torch.stack([e for _, _, e in items])
    batch = torch.repeat_interleave(torch.arange(len(items)), torch.tensor([len(p) for p, _, _ in items]))
    return {"pos": pos, "force": force, "energy": energy, "batch": batch}
