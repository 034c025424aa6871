import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

import models  # noqa: F401  (fills the registry)
from registry import MODELS


def spirals(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.arange(n) % 2
    r = torch.rand(n, generator=g) * 2 + 0.2
    a = 2 * r + 3.1416 * y
    x = torch.stack([r * torch.cos(a), r * torch.sin(a)], 1)
    return x + 0.05 * torch.randn(n, 2, generator=g), y


def worker(rank, world_size, port, cfg):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(port)
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    torch.manual_seed(cfg["seed"])

    x, y = spirals(cfg["rows"], cfg["seed"])
    x, y = x[rank::world_size], y[rank::world_size]
    model = DDP(MODELS[cfg["model"]](2, 2, **cfg["model_args"]))
    opt = torch.optim.Adam(model.parameters(), lr=cfg["lr"])
    sched = torch.optim.lr_scheduler.LambdaLR(opt, cfg["schedule"])

    gen = torch.Generator().manual_seed(cfg["seed"] + rank)
    for step in range(cfg["steps"]):
        idx = torch.randint(0, len(x), (cfg["batch"],), generator=gen)
        loss = F.cross_entropy(model(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        if rank == 0 and step % 20 == 0:
            print(f"step {step} loss {loss.item():.3f} lr {sched.get_last_lr()[0]:.4f}", flush=True)

    with torch.no_grad():
        hit = (model(x).argmax(1) == y).float().sum().reshape(1)
    dist.all_reduce(hit)
    if rank == 0:
        print(f"{cfg['model']}: train acc {hit.item() / cfg['rows']:.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()
