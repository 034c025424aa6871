"""Detector whose number of boxes differs between processes; results are gathered as objects after training."""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def gather_dicts(mine):
    slots = [None] * dist.get_world_size() if dist.get_rank() == 0 else None
    dist.gather_object(mine, slots, dst=0)
    return slots


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    net = DDP(nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16)))
    opt = torch.optim.Adam(net.parameters(), lr=1e-2)
    g = torch.Generator().manual_seed(7)
    line = torch.rand(65, 16, generator=g)
    target = (line > 0.7).float()
    for step in range(30):
        idx = torch.randint(0, 65, (16,), generator=g)[rank::world]
        loss = nn.functional.binary_cross_entropy_with_logits(net(line[idx]), target[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
    found = {}
    with torch.no_grad():
        for i in range(rank, 65, world):
            hits = (net.module(line[i]) > 0).nonzero().flatten().tolist()
            if hits:
                found[i] = hits
    parts = gather_dicts(found)
    if rank == 0:
        whole = {k: v for part in parts for k, v in part.items()}
        print(f"{len(whole)} lines with hits, {sum(map(len, whole.values()))} hits, from {[len(p) for p in parts]}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
