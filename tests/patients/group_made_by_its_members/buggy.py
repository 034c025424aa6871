# style: functions, subgroups
# nproc: 4
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def make_group(rank, world_size, size=2):
    first = rank // size * size
    return dist.new_group(list(range(first, first + size)))  # <-- DDP408


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(6, 10)
        self.out = nn.Linear(10, 3)

    def forward(self, x):
        return self.out(torch.relu(self.hidden(x)))


def group_mean(value, group):
    total = value.detach().clone()
    dist.all_reduce(total, group=group)
    return total / dist.get_world_size(group)


def train(model, group, rank, steps=6):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(rank)
    for _ in range(steps):
        x = torch.randn(12, 6, generator=generator)
        y = x.argmax(1) % 3
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return group_mean(loss, group)


def main():
    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    group = make_group(rank, world_size)
    torch.manual_seed(0)
    model = DDP(Classifier())
    loss = train(model, group, rank)
    if rank % 2 == 0:
        print(f"node {rank // 2}: loss {loss.item():.3f}")
    dist.barrier()
    del model
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
