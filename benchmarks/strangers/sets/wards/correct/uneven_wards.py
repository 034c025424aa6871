"""Wards of different size, no row is thrown away.   torchrun --nproc_per_node 2 uneven_wards.py"""
import zlib

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset


def ward_of(stay, wards):
    return zlib.crc32(stay.encode()) % wards


def rows(rank, world, n=301):
    g = torch.Generator().manual_seed(4)
    x = torch.randn(n, 8, generator=g)
    y = (x[:, 0] - x[:, 3] + 0.5 * torch.randn(n, generator=g) > 0).float()
    mine = torch.tensor([ward_of(f"stay-{i}", world) == rank for i in range(n)])
    return TensorDataset(x[mine], y[mine])


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    data = rows(rank, world)
    loader = DataLoader(data, batch_size=5, shuffle=True)
    torch.manual_seed(1)
    net = DDP(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1)))
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(4):
        right = torch.zeros(2)
        with Join([net]):
            for x, y in loader:
                out = net(x).squeeze(1)
                loss = nn.functional.binary_cross_entropy_with_logits(out, y)
                opt.zero_grad()
                loss.backward()
                opt.step()
                right += torch.tensor([((out > 0) == (y > 0)).sum().item(), len(y)])
        dist.all_reduce(right)
        if rank == 0:
            print(f"epoch {epoch} accuracy {right[0] / right[1]:.3f} over {int(right[1])} rows", flush=True)
    print(f"[{rank}] had {len(data)} rows in {len(loader)} batches", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
