"""Synchronous SGD written by hand: one broadcast at the start, one flat all-reduce per step."""
import argparse
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters


def average_gradients(params, world):
    flat = torch.cat([p.grad.reshape(-1) for p in params])
    dist.all_reduce(flat)
    flat /= world
    i = 0
    for p in params:
        p.grad = flat[i:i + p.numel()].view_as(p).clone()
        i += p.numel()


def batches(rank, n):
    g = torch.Generator().manual_seed(rank)
    for _ in range(n):
        x = torch.randn(20, 7, generator=g)
        yield x, (x[:, :1] - x[:, 1:2]).relu()


def worker(rank, args):
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", str(args.port))
    dist.init_process_group("gloo", rank=rank, world_size=args.workers)
    torch.manual_seed(rank)
    net = nn.Sequential(nn.Linear(7, 32), nn.ReLU(), nn.Linear(32, 1))
    start = parameters_to_vector(net.parameters()).detach()
    dist.broadcast(start, src=0)
    vector_to_parameters(start, net.parameters())
    params = [p for p in net.parameters() if p.requires_grad]
    opt = torch.optim.SGD(params, lr=args.lr, momentum=0.9)
    for i, (x, y) in enumerate(batches(rank, args.steps)):
        opt.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        average_gradients(params, args.workers)
        nn.utils.clip_grad_norm_(params, 1.0)
        opt.step()
    print(f"worker {rank} loss {loss.item():.4f} weights {parameters_to_vector(params).double().sum().item():.6f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--port", type=int, default=29655)
    p.add_argument("--steps", type=int, default=60)
    p.add_argument("--lr", type=float, default=0.02)
    args = p.parse_args()
    mp.spawn(worker, args=(args,), nprocs=args.workers)
