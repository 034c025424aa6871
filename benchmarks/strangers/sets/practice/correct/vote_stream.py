# speech commands, utterances arrive in tar-like shards of different size
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset

SHARDS = {0: 70, 1: 41, 2: 66, 3: 58, 4: 90}


class Shards(IterableDataset):
    def __init__(self, names):
        self.names = names

    def __iter__(self):
        for s in self.names:
            g = torch.Generator().manual_seed(s)
            for _ in range(SHARDS[s]):
                x = torch.randn(20, 8, generator=g)
                yield x, (x[:, 0].mean() > 0).long()


def in_step(loader):
    """Yields as long as all ranks still have a full batch."""
    it = iter(loader)
    while True:
        batch = next(it, None)
        alive = torch.tensor(int(batch is not None))
        dist.all_reduce(alive, op=dist.ReduceOp.MIN)
        if not alive.item():
            return
        yield batch


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Conv1d(8, 16, 5)
        self.o = nn.Linear(16, 2)

    def forward(self, x):
        return self.o(self.c(x.transpose(1, 2)).relu().mean(-1))


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DistributedDataParallel(Net())
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(3):
        names = [s for s in sorted(SHARDS) if (s + epoch) % world == rank]
        steps = 0
        for x, y in in_step(DataLoader(Shards(names), batch_size=16, drop_last=True)):
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            steps += 1
        if rank == 0:
            print("epoch", epoch, "steps", steps, "loss %.3f" % loss.item(), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
