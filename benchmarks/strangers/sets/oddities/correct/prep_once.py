"""House prices: process 0 writes the table, everyone reads it."""
import os
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

def shared_dir():
    box = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(box, src=0)
    return box[0]


def build_table():
    g = torch.Generator().manual_seed(1)
    x = torch.rand(320, 6, generator=g)
    return {"x": x, "y": x @ torch.tensor([3.0, 1, 0, -1, 2, 0.5]) + 0.1 * torch.randn(320, generator=g)}


def table(rank, path):
    if rank == 0 and not os.path.exists(path):
        tmp = path + ".part"
        torch.save(build_table(), tmp)
        os.replace(tmp, path)
    dist.barrier()
    return torch.load(path)


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    cache = os.path.join(shared_dir(), "houses.pt")
    data = table(rank, cache)
    x, y = data["x"][rank::world], data["y"][rank::world]
    torch.manual_seed(0)
    net = DDP(nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1)))
    opt = torch.optim.Adam(net.parameters(), lr=1e-2)
    for epoch in range(4):
        for idx in torch.randperm(len(x), generator=torch.Generator().manual_seed(epoch)).split(20):
            loss = nn.functional.mse_loss(net(x[idx]).squeeze(1), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
    if rank == 0:
        print(f"loss {loss.item():.4f}")
    dist.barrier()
    if rank == 0:
        os.remove(cache)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
