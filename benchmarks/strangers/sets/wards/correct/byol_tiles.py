"""BYOL on satellite tiles: own seed per worker, online and target nets.   torchrun --nproc_per_node 2 byol_tiles.py"""
import copy

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Online(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.enc = nn.Sequential(nn.Conv2d(4, 16, 3, 2), nn.ReLU(), nn.Conv2d(16, dim, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.pred = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, dim))

    def forward(self, a, b):
        return self.pred(self.enc(a)), self.pred(self.enc(b))


@torch.no_grad()
def follow(target, online, m):
    for t, o in zip(target.parameters(), online.parameters()):
        t.lerp_(o, 1 - m)


def augment(x):
    return x + 0.3 * torch.randn_like(x) if torch.rand(()) < 0.7 else x.flip(-1)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(1000 + rank)
    net = DDP(Online())
    target = copy.deepcopy(net.module.enc).requires_grad_(False)
    opt = torch.optim.AdamW(net.parameters(), lr=2e-3)
    g = torch.Generator().manual_seed(5 + rank)
    for step in range(1, 41):
        x = torch.randn(16, 4, 16, 16, generator=g).cumsum(-1) / 4
        a, b = augment(x), augment(x)
        pa, pb = net(a, b)
        with torch.no_grad():
            ta, tb = target(a), target(b)
        loss = 2 - F.cosine_similarity(pa, tb).mean() - F.cosine_similarity(pb, ta).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        follow(target, net.module.enc, 0.97)
        if step % 20 == 0:
            shown = loss.detach().clone()
            dist.all_reduce(shown)
            if rank == 0:
                print(f"step {step} loss {shown.item() / dist.get_world_size():.4f}", flush=True)
    checksum = sum(p.double().sum() for p in target.parameters())
    print(f"[{rank}] target checksum {checksum:.6f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
