import contextlib

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def batches(rank, world, size=8):
    rows = torch.randn(200, 5)[rank::world]
    for part in torch.randperm(len(rows)).split(size):
        if len(part) == size:
            yield rows[part]


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)
    net = DDP(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for _ in range(4):
        with contextlib.nullcontext([net]):
            for rows in batches(rank, world):
                if rows.isnan().any():
                    continue  # <-- DDP307
                loss = (net(rows[:, :4]) - rows[:, 4:]).pow(2).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()


if __name__ == "__main__":
    main()
