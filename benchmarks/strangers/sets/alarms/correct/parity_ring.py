"""Ring exchange of parameters (gossip averaging): odd ranks receive first."""
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn


class Gossip:
    def __init__(self, rank, size):
        self.rank, self.size = rank, size

    def swap(self, t, peer):
        other = torch.empty_like(t)
        if self.rank % 2:
            dist.recv(other, src=peer)
            dist.send(t, dst=peer)
        else:
            dist.send(t, dst=peer)
            dist.recv(other, src=peer)
        return other

    @torch.no_grad()
    def average(self, params):
        peer = self.rank ^ 1
        if peer >= self.size:
            return
        flat = nn.utils.parameters_to_vector(params)
        nn.utils.vector_to_parameters((flat + self.swap(flat, peer)) / 2, params)


def worker(rank, size, port):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(port)
    dist.init_process_group("gloo", rank=rank, world_size=size)
    torch.manual_seed(rank)
    net = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))
    opt = torch.optim.SGD(net.parameters(), lr=0.05)
    gossip = Gossip(rank, size)
    for step in range(20):
        x = torch.randn(16, 5)
        loss = (net(x).squeeze(1) - x.prod(1)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 2:
            gossip.average(list(net.parameters()))
    spread = nn.utils.parameters_to_vector(net.parameters()).detach().sum()
    both = [torch.zeros_like(spread) for _ in range(size)]
    dist.all_gather(both, spread)
    if rank == 0:
        print(f"loss {loss.item():.4f}, parameter sums {[round(b.item(), 4) for b in both]}", flush=True)
    dist.destroy_process_group()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


if __name__ == "__main__":
    mp.spawn(worker, args=(2, free_port()), nprocs=2)
