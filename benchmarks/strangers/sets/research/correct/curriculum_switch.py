"""Curriculum: the stage changes when the *global* error is low enough; the new loader is built on every rank."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Stage:
    def __init__(self, name, noise, threshold):
        self.name, self.noise, self.threshold = name, noise, threshold

    def loader(self):
        g = torch.Generator().manual_seed(int(self.noise * 100))
        x = torch.randn(192, 6, generator=g)
        y = x[:, :2].sum(1, keepdim=True) + self.noise * torch.randn(192, 1, generator=g)
        ds = TensorDataset(x, y)
        sampler = DistributedSampler(ds, drop_last=True)
        return DataLoader(ds, batch_size=16, sampler=sampler), sampler


def mean_over_ranks(value):
    t = torch.tensor([value])
    dist.all_reduce(t)
    return (t / dist.get_world_size()).item()


def run():
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Linear(6, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    stages = iter([Stage("easy", 0.0, 0.3), Stage("medium", 0.2, 0.12), Stage("hard", 0.5, 0.0)])
    stage = next(stages)
    loader, sampler = stage.loader()
    for epoch in range(8):
        sampler.set_epoch(epoch)
        total = 0.0
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        error = mean_over_ranks(total / len(loader))
        if rank == 0:
            print(f"epoch {epoch} [{stage.name}] {error:.4f}", flush=True)
        if error < stage.threshold:
            stage = next(stages)
            loader, sampler = stage.loader()
            dist.barrier()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    run()
    dist.destroy_process_group()
