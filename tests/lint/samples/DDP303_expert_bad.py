import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    body = DDP(nn.Linear(4, 8))  # <-- DDP303
    torch.manual_seed(rank)
    expert = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 1))
    both = [{"params": body.parameters()}, {"params": expert.parameters()}]
    optimizer = torch.optim.Adam(both, lr=1e-3)
    for _ in range(10):
        rows = torch.randn(6, 4)
        loss = expert(body(rows)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(rank, world, loss.item())


if __name__ == "__main__":
    main()
