import itertools

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Sampler, TensorDataset


class InfiniteSampler(Sampler):
    def __init__(self, size, rank, world, seed=0):
        self.size, self.rank, self.world, self.seed = size, rank, world, seed

    def _endless(self):
        g = torch.Generator().manual_seed(self.seed)
        while True:
            yield from torch.randperm(self.size, generator=g).tolist()

    def __iter__(self):
        yield from itertools.islice(self._endless(), self.rank, None, self.world)


def main(iters=20, batch=4):
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    n = iters * batch * world
    x = torch.randn(n, 3, generator=torch.Generator().manual_seed(1))
    data = iter(DataLoader(TensorDataset(x, torch.arange(n)), batch, sampler=InfiniteSampler(n, rank, world)))
    model = DDP(torch.nn.Linear(3, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    used = torch.zeros(n)
    for _ in range(iters):
        xb, idx = next(data)
        used[idx] += 1
        loss = (model(xb) - xb.sum(1, keepdim=True)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    dist.all_reduce(used)
    if rank == 0:
        print(f"loss {loss.item():.4f} each sample used {int(used.min())} to {int(used.max())} times", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
