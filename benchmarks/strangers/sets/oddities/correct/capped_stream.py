"""Stream of text lines cut among processes; all take the same number of batches from what may be unequal shares."""
import itertools

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset


class Lines(IterableDataset):
    def __init__(self, rank, world, total=347):
        self.rank, self.world, self.total = rank, world, total

    def __iter__(self):
        g = torch.Generator().manual_seed(0)
        for i in range(self.total):
            line = torch.randint(0, 30, (12,), generator=g)
            if i % self.world == self.rank:
                yield line, (line < 10).sum() % 2


def fewest(n):
    t = torch.tensor([n])
    dist.all_reduce(t, op=dist.ReduceOp.MIN)
    return int(t)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    data = Lines(rank, world)
    steps = fewest(len(range(rank, data.total, world)) // 6)
    net = DDP(nn.Sequential(nn.EmbeddingBag(30, 16), nn.ReLU(), nn.Linear(16, 2)))
    opt = torch.optim.Adam(net.parameters(), lr=1e-2)
    for epoch in range(2):
        for x, y in itertools.islice(DataLoader(data, batch_size=6), steps):
            loss = nn.functional.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"rank {rank} epoch {epoch} steps {steps} loss {loss.item():.3f}", flush=True)
    dist.destroy_process_group()
