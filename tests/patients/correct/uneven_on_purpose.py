# style: Join, global batches split by rank, agreed minimum of batches
# nproc: 3
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Subset, TensorDataset


def make_data():
    x = torch.randn(50, 4, generator=torch.Generator().manual_seed(0))
    return TensorDataset(x, x.sum(dim=1, keepdim=True))


def step(model, optimizer, x, y):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()


def with_join(model, optimizer, data, rank, world_size):
    loader = DataLoader(Subset(data, range(rank, len(data), world_size)), batch_size=4)
    with Join([model]):
        for x, y in loader:
            step(model, optimizer, x, y)


def with_global_batches(model, optimizer, data, rank, world_size):
    order = torch.Generator().manual_seed(5)
    loader = DataLoader(data, batch_size=6, shuffle=True, generator=order, drop_last=True)
    for x, y in loader:
        step(model, optimizer, x[rank::world_size], y[rank::world_size])


def with_agreed_count(model, optimizer, data, rank, world_size):
    loader = DataLoader(Subset(data, range(rank, len(data), world_size)), batch_size=2)
    count = torch.tensor(len(loader))
    dist.all_reduce(count, op=dist.ReduceOp.MIN)
    for number, (x, y) in enumerate(loader):
        if number >= int(count):
            break
        step(model, optimizer, x, y)


def main():
    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = make_data()
    for train in (with_join, with_global_batches, with_agreed_count):
        train(model, optimizer, data, rank, world_size)
        dist.barrier()
    print(f"rank {rank} done")
    del model, optimizer


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
