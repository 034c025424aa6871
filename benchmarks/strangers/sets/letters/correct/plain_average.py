"""Tabular net without any wrapper: weights are spread once, gradients are averaged in one piece per step."""
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

CARDS = [4, 7, 3, 12, 9]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.ModuleList(nn.Embedding(c, 4) for c in CARDS)
        self.mlp = nn.Sequential(nn.Linear(4 * len(CARDS) + 6, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, cat, num):
        return self.mlp(torch.cat([e(cat[:, i]) for i, e in enumerate(self.emb)] + [num], 1)).squeeze(1)


def average_gradients(model, world):
    flat = torch.cat([p.grad.flatten() for p in model.parameters()])
    dist.all_reduce(flat)
    flat.div_(world)
    at = 0
    for p in model.parameters():
        p.grad.copy_(flat[at:at + p.numel()].view_as(p))
        at += p.numel()


def work(rank, world, port):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    torch.manual_seed(rank)
    net = Net()
    start = parameters_to_vector(net.parameters()).detach()
    dist.broadcast(start, src=0)
    vector_to_parameters(start, net.parameters())
    opt = torch.optim.AdamW(net.parameters(), 5e-3)
    g = torch.Generator().manual_seed(90 + rank)
    for step in range(1, 41):
        cat = torch.stack([torch.randint(0, c, (32,), generator=g) for c in CARDS], 1)
        num = torch.randn(32, 6, generator=g)
        y = ((cat[:, 3] > 6).float() + num[:, 0] > 0.5).float()
        loss = nn.functional.binary_cross_entropy_with_logits(net(cat, num), y)
        opt.zero_grad()
        loss.backward()
        average_gradients(net, world)
        opt.step()
        if step % 20 == 0:
            w = parameters_to_vector(net.parameters()).norm().item()
            print(f"[{rank}] step {step} bce {loss.item():.4f} |w| {w:.6f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(work, args=(2, 26000 + os.getpid() % 9000), nprocs=2)
