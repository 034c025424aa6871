"""Two-tower retrieval trained synchronously on several processes without a wrapper."""
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return str(s.getsockname()[1])


class Comm:
    """thin layer over torch.distributed"""

    def __init__(self, rank, size, port):
        os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", port
        dist.init_process_group("gloo", rank=rank, world_size=size)
        self.rank, self.size = rank, size

    def sync_grads(self, module):
        grads = [p.grad for p in module.parameters()]
        flat = torch._utils._flatten_dense_tensors(grads)
        dist.all_reduce(flat)
        flat.div_(self.size)
        for g, s in zip(grads, torch._utils._unflatten_dense_tensors(flat, grads)):
            g.copy_(s)

    def sync_params(self, module, src=0):
        for p in module.parameters():
            dist.broadcast(p.data, src)

    def mean(self, value):
        t = torch.tensor([value])
        dist.all_reduce(t)
        return t.item() / self.size


class Towers(nn.Module):
    def __init__(self, n_query=60, n_doc=60, dim=16):
        super().__init__()
        self.q = nn.Sequential(nn.Embedding(n_query, dim), nn.Linear(dim, dim))
        self.d = nn.Sequential(nn.Embedding(n_doc, dim), nn.Linear(dim, dim))

    def forward(self, q, d):
        return self.q(q) @ self.d(d).T


def clicks(gen, n):
    q = torch.randperm(60, generator=gen)[:n]
    return q, (q * 7 + 3) % 60


def run(rank, size, port):
    comm = Comm(rank, size, port)
    torch.manual_seed(100 + rank)
    model = Towers()
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    gen = torch.Generator().manual_seed(rank)
    for it in range(120):
        q, d = clicks(gen, 24)
        loss = nn.functional.cross_entropy(model(q, d), torch.arange(len(q)))
        opt.zero_grad()
        loss.backward()
        comm.sync_grads(model)
        opt.step()
        avg = comm.mean(loss.item())
        if rank == 0 and it % 40 == 39:
            print(f"iter {it + 1} loss {avg:.4f}", flush=True)
    if rank == 0:
        torch.save(model.state_dict(), "towers.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(run, args=(2, free_port()), nprocs=2)
