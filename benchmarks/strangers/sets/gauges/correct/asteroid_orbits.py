"""Orbit element regression without a wrapper: gradients are summed in flat chunks while backward runs.

    torchrun --nproc_per_node=2 asteroid_orbits.py
"""
import torch
import torch.distributed as dist
import torch.nn as nn


class ChunkedReduce:
    """Averages gradients of a model over all processes, in chunks, from the last layer on."""

    def __init__(self, model, chunk_elems=2000):
        self.world = dist.get_world_size()
        self.chunks, current, size = [], [], 0
        for p in reversed([p for p in model.parameters() if p.requires_grad]):
            current.append(p)
            size += p.numel()
            if size >= chunk_elems:
                self.chunks.append(current)
                current, size = [], 0
        if current:
            self.chunks.append(current)
        self.where = {p: i for i, c in enumerate(self.chunks) for p in c}
        for p in self.where:
            p.register_post_accumulate_grad_hook(self.ready)
        self.reset()

    def reset(self):
        self.waiting = [len(c) for c in self.chunks]
        self.launched = 0
        self.pending = []

    def ready(self, p):
        self.waiting[self.where[p]] -= 1
        while self.launched < len(self.chunks) and self.waiting[self.launched] == 0:
            flat = torch.cat([q.grad.flatten() for q in self.chunks[self.launched]])
            work = dist.all_reduce(flat, async_op=True)
            self.pending.append((work, flat, self.chunks[self.launched]))
            self.launched += 1

    def finish(self):
        for work, flat, params in self.pending:
            work.wait()
            flat /= self.world
            for q, piece in zip(params, flat.split([q.numel() for q in params])):
                q.grad.copy_(piece.view_as(q))
        assert self.launched == len(self.chunks)
        self.reset()


def sightings(rank, world, n=256):
    g = torch.Generator().manual_seed(5)
    x = torch.randn(n, 12, generator=g)
    y = torch.stack([x[:, :6].prod(1).tanh(), x[:, 6:].sum(1) * 0.3], 1)
    return x[rank::world], y[rank::world]


def main(steps=40):
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)
    net = nn.Sequential(nn.Linear(12, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2))
    for t in net.state_dict().values():
        dist.broadcast(t, src=0)
    reducer = ChunkedReduce(net)
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    x, y = sightings(rank, world)
    for step in range(steps):
        lo = step * 16 % len(x)
        loss = nn.functional.mse_loss(net(x[lo:lo + 16]), y[lo:lo + 16])
        opt.zero_grad()
        loss.backward()
        reducer.finish()
        opt.step()
    check = nn.utils.parameters_to_vector(net.parameters()).detach().clone()
    low = check.clone()
    dist.all_reduce(low, op=dist.ReduceOp.MIN)
    assert torch.allclose(check, low)
    if rank == 0:
        print(f"mse {loss.item():.4f} in {len(reducer.chunks)} chunks")
    dist.barrier()


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
