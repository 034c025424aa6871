"""Two seismic networks trained side by side, one model for each pair of processes.

    torchrun --nproc_per_node=4 quake_groups.py
"""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

REGIONS = {"north": [0, 2], "south": [1, 3]}


def picks(region, part, parts, n=240):
    g = torch.Generator().manual_seed(sum(map(ord, region)))
    x = torch.randn(n, 3, 50, generator=g)
    onset = x.abs().sum(1).argmax(1)
    return x[part::parts], onset[part::parts]


class Picker(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv1d(3, 16, 7, padding=3), nn.ReLU(), nn.Conv1d(16, 1, 7, padding=3))

    def forward(self, x):
        return self.net(x).squeeze(1)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    groups = {name: dist.new_group(ranks) for name, ranks in REGIONS.items()}
    region = next(name for name, ranks in REGIONS.items() if rank in ranks)
    ranks, group = REGIONS[region], groups[region]
    lead = ranks[0]

    settings = [None]
    if rank == lead:
        settings[0] = {"lr": 0.01 if region == "north" else 0.005, "epochs": 3 if region == "north" else 4}
    dist.broadcast_object_list(settings, src=lead, group=group)
    cfg = settings[0]

    model = DDP(Picker(), process_group=group)
    opt = torch.optim.Adam(model.parameters(), lr=cfg["lr"])
    x, onset = picks(region, dist.get_rank(group), len(ranks))
    for epoch in range(cfg["epochs"]):
        for i in range(0, len(x), 30):
            loss = nn.functional.cross_entropy(model(x[i:i + 30]), onset[i:i + 30])
            opt.zero_grad()
            loss.backward()
            opt.step()
        mean = loss.detach().clone()
        dist.reduce(mean, dst=lead, group=group)
        if rank == lead:
            print(f"{region} epoch {epoch} loss {mean.item() / len(ranks):.3f}")
    dist.barrier()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
