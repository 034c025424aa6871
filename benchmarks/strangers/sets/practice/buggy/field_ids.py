import os
from collections import defaultdict

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

ROWS = [
    {"device": d, "country": c, "channel": ch, "label": (i * 7 + len(d) + len(c)) % 2}
    for i, (d, c, ch) in enumerate(
        (d, c, ch)
        for d in ("ios", "android", "desktop", "tv")
        for c in ("de", "fr", "us", "in", "br", "jp")
        for ch in ("mail", "search", "social", "direct", "partner"))
]
FIELDS = ("device", "country", "channel")


def index_fields(rows):
    seen = defaultdict(set)
    for r in rows:
        for f in FIELDS:
            seen[f].add(r[f])
    return {f: {v: k for k, v in enumerate(vals)} for f, vals in seen.items()}


class Wide(nn.Module):
    def __init__(self, index, d=8):
        super().__init__()
        self.tables = nn.ModuleDict({f: nn.Embedding(len(index[f]), d) for f in FIELDS})
        self.mlp = nn.Sequential(nn.Linear(3 * d, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, ids):
        parts = [self.tables[f](ids[:, k]) for k, f in enumerate(FIELDS)]
        return self.mlp(torch.cat(parts, 1)).squeeze(1)


def encode(rows, index):
    x = torch.tensor([[index[f][r[f]] for f in FIELDS] for r in rows])
    y = torch.tensor([float(r["label"]) for r in rows])
    return x, y


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    index = index_fields(ROWS)
    x, y = encode(ROWS[rank::world], index)
    torch.manual_seed(0)
    model = DDP(Wide(index))
    opt = torch.optim.Adam(model.parameters(), lr=0.02)
    for epoch in range(30):
        perm = torch.randperm(len(x))
        for k in range(0, len(x), 20):
            b = perm[k:k + 20]
            loss = nn.functional.binary_cross_entropy_with_logits(model(x[b]), y[b])
            opt.zero_grad()
            loss.backward()
            opt.step()
    if rank == 0:
        print("train loss %.4f" % loss.item())
        torch.save({"index": index, "model": model.module.state_dict()},
                   os.path.join("/tmp", "wide_model.pt"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
