# Click-through model: the feature table is split over the columns of a process mesh,
# the batch over its rows.
import argparse
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn


class _GatherSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        y = x.clone()
        dist.all_reduce(y, group=group)
        return y

    @staticmethod
    def backward(ctx, g):
        return g, None


class Mesh:
    def __init__(self, rank, rows, cols):
        self.row, self.col = divmod(rank, cols)
        self.rows, self.cols = rows, cols
        self.row_group = self._open([self.row * cols + c for c in range(cols)])
        self.col_group = self._open([r * cols + self.col for r in range(rows)])

    def _open(self, members):
        return dist.new_group(sorted(members))


class SplitTable(nn.Module):
    def __init__(self, n_ids, dim, mesh):
        super().__init__()
        self.mesh = mesh
        self.lo = mesh.col * n_ids // mesh.cols
        self.hi = (mesh.col + 1) * n_ids // mesh.cols
        g = torch.Generator().manual_seed(40 + mesh.col)
        self.weight = nn.Parameter(torch.randn(self.hi - self.lo, dim, generator=g) * 0.05)

    def forward(self, ids):
        inside = (ids >= self.lo) & (ids < self.hi)
        local = (ids - self.lo).clamp(0, self.hi - self.lo - 1)
        vec = self.weight[local] * inside.unsqueeze(-1)
        return _GatherSum.apply(vec, self.mesh.row_group)


class ClickModel(nn.Module):
    def __init__(self, n_ids, dim, mesh):
        super().__init__()
        self.table = SplitTable(n_ids, dim, mesh)
        self.top = nn.Sequential(nn.Linear(dim, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, ids):
        return self.top(self.table(ids).sum(1)).squeeze(-1)


def synth(n_ids, n, seed):
    g = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, n_ids, (n, 6), generator=g)
    return ids, ((ids % 7 == 0).sum(1) > 0).float()


def worker(rank, world, args):
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ["MASTER_PORT"] = str(args.port)
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(0)
    mesh = Mesh(rank, args.rows, args.cols)
    model = ClickModel(args.n_ids, 16, mesh)
    opt = torch.optim.Adam(model.parameters(), lr=0.02)
    ids, y = synth(args.n_ids, args.samples, 9)
    ids, y = ids[mesh.row::mesh.rows], y[mesh.row::mesh.rows]
    for step in range(args.steps):
        pick = torch.arange(step * 32, step * 32 + 32) % len(y)
        loss = nn.functional.binary_cross_entropy_with_logits(model(ids[pick]), y[pick])
        opt.zero_grad()
        loss.backward()
        for p in model.parameters():
            dist.all_reduce(p.grad, group=mesh.col_group)
            p.grad /= mesh.rows
        opt.step()
        if rank == 0 and step % 10 == 0:
            print(f"step {step} loss of row 0 {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--rows", type=int, default=2)
    ap.add_argument("--cols", type=int, default=2)
    ap.add_argument("--n-ids", type=int, default=400)
    ap.add_argument("--samples", type=int, default=2048)
    ap.add_argument("--steps", type=int, default=40)
    ap.add_argument("--port", type=int, default=29571)
    a = ap.parse_args()
    mp.spawn(worker, args=(a.rows * a.cols, a), nprocs=a.rows * a.cols)
