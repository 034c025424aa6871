"""A gated linear recurrence with the sequence cut over a context-parallel group.

World of 4 = 2 data replicas x 2 sequence chunks; ranks of one sequence are strided (0,2 and 1,3).
"""
import argparse

import torch
import torch.distributed as dist
import torch.nn as nn


class Mesh:
    def __init__(self, cp):
        world, rank = dist.get_world_size(), dist.get_rank()
        self.dp = world // cp
        self.cp_group = None
        for d in range(self.dp):
            ranks = list(range(d, world, self.dp))
            g = dist.new_group(ranks)
            if rank in ranks:
                self.cp_group = g
        self.cp_size = cp
        self.cp_rank = dist.get_rank(self.cp_group)
        self.dp_rank = rank % self.dp


class GatedScan(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.gate = nn.Linear(dim, dim)
        self.inp = nn.Linear(dim, dim)
        self.out = nn.Linear(dim, 1)

    def chunk(self, x, state):
        hs = []
        decay, value = torch.sigmoid(self.gate(x)), self.inp(x)
        for t in range(x.size(1)):
            state = decay[:, t] * state + (1 - decay[:, t]) * value[:, t]
            hs.append(state)
        return torch.stack(hs, 1), state

    def forward(self, x, state):
        hs, last = self.chunk(x, state)
        return self.out(hs).squeeze(-1), last


def pass_along_chain(mesh, model, x):
    """Chunk i starts from the final state of chunk i-1; the state itself carries no gradient."""
    state = torch.zeros(x.size(0), x.size(2))
    for turn in range(mesh.cp_size):
        if mesh.cp_rank == turn:
            with torch.no_grad():
                _, last = model.chunk(x, state)
        else:
            last = torch.empty_like(state)
        dist.broadcast(last, src=dist.get_global_rank(mesh.cp_group, turn), group=mesh.cp_group)
        if mesh.cp_rank == turn + 1:
            state = last
    return state


def average_gradients(model):
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()


def sequences(mesh, step, length, dim):
    g = torch.Generator().manual_seed(1000 * step + mesh.dp_rank)
    x = torch.randn(4, length, dim, generator=g)
    y = x.cumsum(1).mean(2) / 4
    part = slice(mesh.cp_rank * length // mesh.cp_size, (mesh.cp_rank + 1) * length // mesh.cp_size)
    return x[:, part], y[:, part]


def main(opts):
    mesh = Mesh(opts.cp)
    torch.manual_seed(8)
    model = GatedScan(opts.dim)
    optim = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(opts.steps):
        x, y = sequences(mesh, step, opts.length, opts.dim)
        pred, _ = model(x, pass_along_chain(mesh, model, x))
        loss = nn.functional.mse_loss(pred, y)
        optim.zero_grad()
        loss.backward()
        average_gradients(model)
        optim.step()
    value = loss.detach().clone()
    dist.all_reduce(value)
    if dist.get_rank() == 0:
        print(f"loss {value.item() / dist.get_world_size():.4f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--cp", type=int, default=2)
    parser.add_argument("--dim", type=int, default=8)
    parser.add_argument("--length", type=int, default=16)
    parser.add_argument("--steps", type=int, default=8)
    dist.init_process_group("gloo")
    main(parser.parse_args())
    dist.destroy_process_group()
