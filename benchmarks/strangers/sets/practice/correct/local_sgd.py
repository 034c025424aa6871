import argparse
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


@torch.no_grad()
def average_weights(model):
    flat = torch.cat([p.view(-1) for p in model.parameters()])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    k = 0
    for p in model.parameters():
        p.copy_(flat[k:k + p.numel()].view_as(p))
        k += p.numel()


def stream(rank, n):
    g = torch.Generator().manual_seed(rank)
    while True:
        x = torch.randn(n, 8, generator=g)
        yield x, (x[:, 0] * x[:, 1]).unsqueeze(1)


def worker(rank, opt):
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ["MASTER_PORT"] = str(opt.port)
    dist.init_process_group("gloo", rank=rank, world_size=opt.procs)
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1)))
    sgd = torch.optim.SGD(model.parameters(), lr=opt.lr)
    data = stream(rank, 32)
    for step in range(1, opt.steps + 1):
        x, y = next(data)
        with model.no_sync():
            loss = nn.functional.mse_loss(model(x), y)
            sgd.zero_grad()
            loss.backward()
        sgd.step()
        if step % opt.every == 0:
            average_weights(model)
            if rank == 0 and step % (5 * opt.every) == 0:
                print(f"step {step} local loss {loss.item():.3f}", flush=True)
    if rank == 0:
        torch.save(model.module.state_dict(), "/tmp/local_sgd.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--procs", type=int, default=2)
    ap.add_argument("--steps", type=int, default=80)
    ap.add_argument("--every", type=int, default=8)
    ap.add_argument("--lr", type=float, default=0.1)
    ap.add_argument("--port", type=int, default=29817)
    args = ap.parse_args()
    mp.spawn(worker, (args,), nprocs=args.procs)
