"""Clinical notes: a head for rare codes that most batches do not need."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


class NoteModel(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(40, dim), nn.ReLU())
        self.common = nn.Linear(dim, 6)
        self.rare = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, 3))

    def forward(self, x, has_rare):
        h = self.body(x)
        common = self.common(h)
        if has_rare.any():
            return common, self.rare(h[has_rare]), h.new_zeros(())
        keep = sum(p.sum() for p in self.rare.parameters()) * 0.0
        return common, None, keep


def notes(n, rank, gen):
    x = torch.randn(n, 40, generator=gen)
    common = x[:, :6].argmax(1)
    rare_mask = torch.rand(n, generator=gen) < (0.02 if rank == 0 else 0.15)
    rare = x[:, 6:9].argmax(1)
    return x, common, rare_mask, rare


def main():
    rank = int(os.environ["RANK"])
    torch.manual_seed(0)
    model = DDP(NoteModel())
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    gen = torch.Generator().manual_seed(rank)
    without = 0
    for step in range(60):
        x, common, mask, rare = notes(12, rank, gen)
        out, rare_out, extra = model(x, mask)
        loss = F.cross_entropy(out, common) + extra
        if rare_out is not None:
            loss = loss + 0.5 * F.cross_entropy(rare_out, rare[mask])
        else:
            without += 1
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"[{rank}] {without} of 60 batches without rare codes, loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
