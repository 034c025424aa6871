"""Own sampler: the generator of the permutation is shared by all ranks, only the augmentation is seeded per rank."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, Sampler


class DealtSampler(Sampler):
    def __init__(self, n, seed):
        self.n, self.round = n, 0
        self.gen = torch.Generator().manual_seed(seed)

    def __len__(self):
        return self.n // dist.get_world_size()

    def __iter__(self):
        order = torch.randperm(self.n, generator=self.gen)
        r, w = dist.get_rank(), dist.get_world_size()
        return iter(order[r * len(self):(r + 1) * len(self)].tolist())


class Tiles(Dataset):
    def __init__(self, n, rank):
        self.x = torch.randn(n, 2, 12, 12, generator=torch.Generator().manual_seed(3))
        self.rng = torch.Generator().manual_seed(100 + rank)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        x = self.x[i]
        if torch.rand(1, generator=self.rng) < 0.5:
            x = x.flip(-1)
        return x, x.mean()


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(40 + rank)
    data = Tiles(161, rank)
    loader = DataLoader(data, 10, sampler=DealtSampler(len(data), 40))
    model = DDP(nn.Sequential(nn.Conv2d(2, 6, 3), nn.ReLU(), nn.Flatten(), nn.Linear(600, 1)))
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(3):
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x)[:, 0], y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        value = loss.detach()
        dist.reduce(value, dst=0, op=dist.ReduceOp.SUM)
        if rank == 0:
            print(f"{epoch}: {value.item() / dist.get_world_size():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
