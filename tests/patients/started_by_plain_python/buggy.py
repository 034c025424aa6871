# style: functions, no launcher
# nproc: 1
# launch: python
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def setup():
    dist.init_process_group("gloo")  # <-- DDP103
    return dist.get_rank(), dist.get_world_size()


def train(model, rank, steps=5):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(rank)
    for _ in range(steps):
        x = torch.randn(8, 4, generator=generator)
        optimizer.zero_grad()
        loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    rank, world_size = setup()
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    model = DDP(net) if world_size > 1 else net
    loss = train(model, rank)
    if rank == 0:
        print(f"{world_size} processes, loss {loss:.4f}")
    if dist.is_initialized():
        del model
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
