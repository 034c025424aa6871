"""Tile classifier with a home-made sampler that advances its own epoch counter."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Sampler, TensorDataset

EPOCHS, BATCH = 3, 16


class TileSampler(Sampler):
    def __init__(self, n, rank, world, seed=0):
        self.n, self.rank, self.world, self.seed = n, rank, world, seed
        self.pass_no = 0

    def __len__(self):
        return self.n // self.world

    def __iter__(self):
        g = torch.Generator()
        g.manual_seed(self.seed * 100003 + self.pass_no)
        self.pass_no += 1
        order = torch.randperm(self.n, generator=g)[: len(self) * self.world]
        return iter(order.view(-1, self.world)[:, self.rank].tolist())


def tiles(n=515):
    g = torch.Generator().manual_seed(3)
    y = torch.randint(0, 4, (n,), generator=g)
    return TensorDataset(torch.randn(4, 30, generator=g)[y] + torch.randn(n, 30, generator=g), y)


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    data = tiles()
    loader = DataLoader(data, BATCH, sampler=TileSampler(len(data), rank, world), drop_last=True)
    model = DDP(nn.Sequential(nn.Linear(30, 40), nn.ReLU(), nn.Linear(40, 4)))
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(EPOCHS):
        total = torch.zeros(2)
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += torch.tensor([loss.item(), 1.0])
        dist.all_reduce(total)
        if rank == 0:
            print(f"epoch {epoch} loss {total[0] / total[1]:.4f}")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
