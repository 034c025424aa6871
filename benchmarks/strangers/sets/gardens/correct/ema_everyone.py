import copy
import os
import shutil
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel


class Shadow:
    def __init__(self, net, decay):
        self.net = copy.deepcopy(net).eval().requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def follow(self, net):
        for s, p in zip(self.net.parameters(), net.parameters()):
            s.lerp_(p, 1 - self.decay)


def noisy(n, g):
    clean = torch.randn(n, 2, generator=g).sign() * torch.tensor([1.0, 0.5])
    t = torch.rand(n, 1, generator=g)
    eps = torch.randn(n, 2, generator=g)
    return torch.cat([clean * (1 - t) + eps * t, t], 1), eps


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(15)
    ddp = DistributedDataParallel(nn.Sequential(nn.Linear(3, 48), nn.SiLU(), nn.Linear(48, 2)))
    shadow = Shadow(ddp.module, 0.95)
    opt = torch.optim.AdamW(ddp.parameters(), lr=5e-3)
    box = [tempfile.mkdtemp(prefix="denoise_") if rank == 0 else None]
    dist.broadcast_object_list(box, src=0)
    noise = torch.Generator().manual_seed(800 + rank)
    for step in range(1, 121):
        x, eps = noisy(64, noise)
        loss = nn.functional.mse_loss(ddp(x), eps)
        opt.zero_grad()
        loss.backward()
        opt.step()
        shadow.follow(ddp.module)
        if step % 40 == 0:
            x, eps = noisy(500, torch.Generator().manual_seed(1 + rank))
            err = nn.functional.mse_loss(shadow.net(x), eps)
            dist.all_reduce(err)
            if rank == 0:
                torch.save(shadow.net.state_dict(), os.path.join(box[0], f"ema{step}.pt"))
                print(f"step {step} ema error {err.item() / world:.4f}", flush=True)
            dist.barrier()
    names = sorted(os.listdir(box[0]))
    last = torch.load(os.path.join(box[0], "ema120.pt"))
    same = all(torch.equal(v, last[k]) for k, v in shadow.net.state_dict().items())
    dist.barrier()
    if rank == 0:
        shutil.rmtree(box[0])
    print(f"[{rank}] {len(names)} files, shadow as saved: {same}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
