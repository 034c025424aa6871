"""Weighted sampling for several processes: all draw the same list and each takes its stride of it."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Sampler, TensorDataset


class WeightedDistributedSampler(Sampler):
    def __init__(self, weights, num_samples, seed=0):
        self.weights, self.seed = torch.as_tensor(weights, dtype=torch.double), seed
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.total = num_samples - num_samples % self.world
        self.epoch = 0

    def __len__(self):
        return self.total // self.world

    def __iter__(self):
        g = torch.Generator()
        g.manual_seed(self.seed + self.epoch)
        self.epoch += 1
        drawn = torch.multinomial(self.weights, self.total, True, generator=g)
        return iter(drawn[self.rank::self.world].tolist())


def main():
    dist.init_process_group("gloo")
    g = torch.Generator().manual_seed(0)
    y = (torch.rand(200, generator=g) < 0.1).long()
    x = torch.randn(200, 6, generator=g) + y[:, None]
    counts = torch.bincount(y).double()
    ds = TensorDataset(x, y)
    loader = DataLoader(ds, batch_size=20, sampler=WeightedDistributedSampler(1 / counts[y], len(ds)))
    model = DDP(nn.Linear(6, 2))
    opt = torch.optim.SGD(model.parameters(), lr=0.2)
    positives = torch.zeros(2)
    for _ in range(5):
        for xb, yb in loader:
            positives += torch.tensor([float(yb.sum()), float(len(yb))])
            opt.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            opt.step()
    dist.all_reduce(positives)
    if dist.get_rank() == 0:
        print(f"{int(positives[1])} samples, {positives[0] / positives[1]:.3f} positive", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
