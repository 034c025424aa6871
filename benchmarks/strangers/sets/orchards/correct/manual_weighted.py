"""Hand-written data parallelism with unequal local batches: sums are reduced, not means."""
import os

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors

SEED, CLASSES = 31, 4


def shares(world):
    w = np.array([2 + r for r in range(world)], dtype=float)
    return w / w.sum()


class Logistic:
    """No nn.Module on purpose."""

    def __init__(self, d, k, hidden=32):
        g = torch.Generator().manual_seed(SEED + 1000 * dist.get_rank())
        self.w1 = (torch.randn(d, hidden, generator=g) * 0.2).requires_grad_()
        self.b1 = torch.zeros(hidden, requires_grad=True)
        self.w2 = (torch.randn(hidden, k, generator=g) * 0.2).requires_grad_()
        self.params = [self.w1, self.b1, self.w2]
        for p in self.params:
            dist.broadcast(p.data, src=0)

    def __call__(self, x):
        return torch.relu(x @ self.w1 + self.b1) @ self.w2


def reduce_sum(tensors):
    flat = _flatten_dense_tensors(tensors)
    dist.all_reduce(flat)
    return _unflatten_dense_tensors(flat, tensors)


def local_slice(batch, rank, world):
    edges = np.round(np.concatenate([[0], np.cumsum(shares(world))]) * len(batch)).astype(int)
    return batch[edges[rank]:edges[rank + 1]]


def data(n, seed):
    centre = torch.randn(CLASSES, 12, generator=torch.Generator().manual_seed(5))
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(CLASSES, (n,), generator=g)
    return centre[y] + torch.randn(n, 12, generator=g), y


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    x, y = data(2000, 1)
    xt, yt = data(400, 2)
    model = Logistic(12, CLASSES)
    vel = [torch.zeros_like(p) for p in model.params]
    shuffler = np.random.default_rng(SEED)
    for epoch in range(5):
        perm = torch.from_numpy(shuffler.permutation(len(x)))
        for batch in perm.split(130):
            mine = local_slice(batch, rank, world)
            loss = F.cross_entropy(model(x[mine]), y[mine], reduction="sum")
            grads = torch.autograd.grad(loss, model.params)
            n = torch.tensor([float(len(mine))])
            *grads, n = reduce_sum([*grads, n])
            with torch.no_grad():
                for p, v, g in zip(model.params, vel, grads):
                    v.mul_(0.9).add_(g / n)
                    p.sub_(0.05 * v)
        if rank == world - 1:
            acc = (model(xt).argmax(1) == yt).float().mean().item()
            print(f"epoch {epoch} test accuracy {acc:.3f} (evaluated on process {rank})", flush=True)
    digest = torch.tensor([float(sum(p.detach().double().abs().sum() for p in model.params))], dtype=torch.float64)
    hi, lo = digest.clone(), digest.clone()
    dist.all_reduce(hi, op=dist.ReduceOp.MAX)
    dist.all_reduce(lo, op=dist.ReduceOp.MIN)
    assert torch.equal(hi, lo)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
