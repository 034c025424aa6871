"""Self-supervised clustering where the prototype queue walks around a ring of workers."""
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

DIM, PROTOS, STEPS = 16, 8, 12


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def encoder():
    return nn.Sequential(nn.Linear(32, 48), nn.ReLU(), nn.Linear(48, DIM))


def local_prototypes(z, k):
    """A few rounds of spherical k-means on the features of this worker."""
    z = F.normalize(z, dim=1)
    centers = z[:k].clone()
    for _ in range(3):
        owner = (z @ centers.T).argmax(1)
        for j in range(k):
            members = z[owner == j]
            if len(members):
                centers[j] = F.normalize(members.mean(0), dim=0)
    return centers


def rotate(protos, rank, world):
    nxt, prv = (rank + 1) % world, (rank - 1) % world
    incoming = torch.empty_like(protos)
    dist.send(protos.contiguous(), dst=nxt)
    dist.recv(incoming, src=prv)
    return incoming


def views(gen, base):
    return [base + 0.2 * torch.randn(base.shape, generator=gen) for _ in range(2)]


def swapped_loss(z1, z2, protos, temp=0.2):
    bank = torch.cat(protos)
    p1 = F.log_softmax(F.normalize(z1, dim=1) @ bank.T / temp, dim=1)
    p2 = F.log_softmax(F.normalize(z2, dim=1) @ bank.T / temp, dim=1)
    return -0.5 * ((p2.detach().exp() * p1).sum(1) + (p1.detach().exp() * p2).sum(1)).mean()


def train(rank, world):
    torch.manual_seed(3)
    model = DDP(encoder())
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    gen = torch.Generator().manual_seed(1000 + rank)
    base = torch.randn(64, 32, generator=gen)
    received = None
    for step in range(STEPS):
        if step % 4 == 0:
            with torch.no_grad():
                own = local_prototypes(model.module(base), PROTOS)
            received = [own, rotate(own, rank, world)]
        v1, v2 = views(gen, base)
        z = model(torch.cat([v1, v2]))
        loss = swapped_loss(z[:64], z[64:], received)
        opt.zero_grad()
        loss.backward()
        opt.step()
    mean = loss.detach().clone()
    dist.all_reduce(mean)
    if rank == 0:
        print(f"mean loss over {world} workers {mean.item() / world:.4f}", flush=True)


def worker(rank, world, port):
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    train(rank, world)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(worker, args=(3, free_port()), nprocs=3)
