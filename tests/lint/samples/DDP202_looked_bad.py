import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def build(seed=7):
    torch.manual_seed(seed)  # <-- DDP202
    return nn.Linear(8, 1)


def pick(data, size=4):
    return data[torch.randint(len(data), (size,))]


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(7 + rank)
    data = torch.arange(800.0).reshape(100, 8)
    net = DDP(build())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(20):
        if step % 5 == 0 and rank == 0:
            with torch.no_grad():
                print(net.module(pick(data)).mean().item())
        loss = net(pick(data)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
