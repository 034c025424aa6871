"""Decentralised SGD: every worker trains alone and swaps weights with its ring neighbour every few steps."""
import os
import socket
from contextlib import closing

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

WORKERS = 2
STEPS = 24
SWAP_EVERY = 4


def free_port():
    with closing(socket.socket()) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def sensor_batches(rank, batch=32, dim=40):
    """Endless stream of readings; every worker sits at another place and has its own bias."""
    g = torch.Generator().manual_seed(100 + rank)
    w = torch.randn(dim, 1, generator=torch.Generator().manual_seed(5))
    while True:
        x = torch.randn(batch, dim, generator=g) + 0.1 * rank
        yield x, x @ w + 0.1 * torch.randn(batch, 1, generator=g)


class RingMixer:
    def __init__(self, model, rank, world):
        self.model = model
        self.nxt = (rank + 1) % world
        self.prv = (rank - 1) % world

    @torch.no_grad()
    def mix(self):
        mine = parameters_to_vector(self.model.parameters())
        theirs = torch.empty_like(mine)
        out = dist.isend(mine, dst=self.nxt)
        dist.recv(theirs, src=self.prv)
        out.wait()
        vector_to_parameters((mine + theirs) / 2, self.model.parameters())


def worker(rank, world, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    model = nn.Sequential(nn.Linear(40, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    mixer = RingMixer(model, rank, world)
    stream = sensor_batches(rank)
    for step in range(1, STEPS + 1):
        x, y = next(stream)
        loss = nn.functional.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % SWAP_EVERY == 0:
            mixer.mix()
            if rank == 0:
                print(f"step {step} loss {loss.item():.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(worker, args=(WORKERS, free_port()), nprocs=WORKERS)
