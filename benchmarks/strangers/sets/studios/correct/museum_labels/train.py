"""Sort museum labels by kind.   torchrun --nproc-per-node 2 train.py"""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

from stopper import Patience
from stream import LabelStream


def held_out():
    g = torch.Generator().manual_seed(-1 % 2**31)
    kind = torch.arange(200) % 5
    return torch.randn(200, 12, generator=g) + 2 * torch.eye(5, 12)[kind], kind


@torch.no_grad()
def look(net, data):
    net.eval()
    out = nn.functional.cross_entropy(net(data[0]), data[1]).item()
    net.train()
    return out


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(5)
    net = nn.Sequential(nn.Linear(12, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 5))
    ddp = DDP(net)
    opt = torch.optim.Adam(ddp.parameters(), lr=1e-2)
    loader = DataLoader(LabelStream(1003, rank, world, seed=8), batch_size=25, drop_last=True)
    patience = Patience(2)
    data = held_out() if rank == 0 else None
    for epoch in range(12):
        for x, y in loader:
            opt.zero_grad()
            nn.functional.cross_entropy(ddp(x), y).backward()
            opt.step()
        value = look(net, data) if rank == 0 else None
        if rank == 0:
            print(f"epoch {epoch} held-out {value:.4f}", flush=True)
        if patience.over(value):
            break
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
