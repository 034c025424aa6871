"""Two glaciers, one process each: shared weights, but every process has the normalisation
statistics of its own glacier (domain-specific norm), exported per glacier."""
import io

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

NAMES = ("north", "south")


def radar(site, n, seed):
    g = torch.Generator().manual_seed(seed * 10 + site)
    y = torch.randint(0, 3, (n,), generator=g)
    proto = torch.randn(3, 1, 12, generator=torch.Generator().manual_seed(0))
    x = proto[y] + 0.5 * torch.randn(n, 1, 12, generator=g)
    return (x * (1 + 4 * site) + 7 * site), y


def net_for(site):
    return nn.Sequential(nn.BatchNorm1d(1, affine=False), nn.Conv1d(1, 16, 3, padding=1), nn.BatchNorm1d(16),
                         nn.ReLU(), nn.Flatten(), nn.Linear(192, 3))


def accuracy(net, site):
    x, y = radar(site, 300, 77)
    net.eval()
    with torch.no_grad():
        hit = (net(x).argmax(1) == y).float().mean().item()
    net.train()
    return hit


def main():
    dist.init_process_group("gloo")
    site = dist.get_rank()
    torch.manual_seed(6)
    x, y = radar(site, 480, 1)
    ddp = DDP(net_for(site), broadcast_buffers=False)
    opt = torch.optim.AdamW(ddp.parameters(), lr=3e-3)
    for epoch in range(4):
        for b in torch.randperm(len(x)).split(32):
            opt.zero_grad()
            F.cross_entropy(ddp(x[b]), y[b]).backward()
            opt.step()
        print(f"{NAMES[site]} epoch {epoch} acc {accuracy(ddp.module, site):.3f}", flush=True)
    buf = io.BytesIO()
    torch.save({"site": NAMES[site], "net": ddp.module.state_dict()}, buf)
    sizes = [None] * dist.get_world_size()
    dist.all_gather_object(sizes, (NAMES[site], buf.getbuffer().nbytes))
    if site == 0:
        print("exports", dict(sizes), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
