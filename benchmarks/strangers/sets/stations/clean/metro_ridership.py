"""Ridership forecasts for metro gates on a cluster with changing allocations.

A run may be cut short and continued later with another number of processes.
The demo below plays one interrupted epoch:
first allocation two processes, second one three.
"""
import os
import tempfile
from dataclasses import asdict, dataclass

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


@dataclass
class RunState:
    epoch: int = 0
    samples: int = 0
    steps: int = 0


class Gates(torch.utils.data.Dataset):
    def __init__(self, n=1440):
        g = torch.Generator().manual_seed(55)
        self.hour = torch.rand(n, generator=g) * 24
        self.day = torch.randint(7, (n,), generator=g)
        self.rain = torch.rand(n, generator=g)
        rush = torch.exp(-((self.hour - 8) / 2) ** 2) + torch.exp(-((self.hour - 18) / 2) ** 2)
        self.y = rush * (self.day < 5) * (1 - 0.3 * self.rain) + 0.02 * torch.randn(n, generator=g)

    def __len__(self):
        return len(self.y)

    def features(self, idx):
        a = self.hour[idx] * torch.pi / 12
        day = nn.functional.one_hot(self.day[idx], 7).float()
        cols = [a.sin(), a.cos(), (2 * a).sin(), (2 * a).cos(), self.rain[idx]]
        return torch.cat([torch.stack(cols, 1), day], 1)


class EpochPlan:
    """Shuffled order of one epoch, cut into global batches."""

    def __init__(self, size, per_process, seed=21):
        self.size, self.per_process, self.seed = size, per_process, seed

    def batches(self, state, rank, world):
        g = torch.Generator().manual_seed(self.seed + state.epoch)
        order = torch.randperm(self.size, generator=g)
        chunk = self.per_process * world
        for lo in range(state.samples, self.size, chunk):
            block = order[lo:lo + chunk]
            if len(block) < world:
                break
            yield block[rank::world][: len(block) // world]


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1))

    def forward(self, x):
        return self.net(x).squeeze(1)


class Job:
    def __init__(self, folder):
        self.path = os.path.join(folder, "job.pt")
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        torch.manual_seed(0)
        net = Forecaster()
        self.state = RunState()
        saved = torch.load(self.path) if os.path.exists(self.path) else None
        if saved:
            net.load_state_dict(saved["net"])
            self.state = RunState(**saved["state"])
        self.model = DDP(net)
        self.opt = torch.optim.Adam(self.model.parameters(), lr=3e-3)
        if saved:
            self.opt.load_state_dict(saved["opt"])
        self.data = Gates()
        self.plan = EpochPlan(len(self.data), per_process=16)

    def save(self):
        if self.rank == 0:
            torch.save({
                "net": self.model.module.state_dict(),
                "opt": self.opt.state_dict(),
                "state": asdict(self.state),
            }, self.path)
        dist.barrier()

    def run(self, epochs, budget=None):
        spent = 0
        while self.state.epoch < epochs:
            for idx in self.plan.batches(self.state, self.rank, self.world):
                out = self.model(self.data.features(idx))
                loss = nn.functional.mse_loss(out, self.data.y[idx])
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                self.state.steps += 1
                self.state.samples += self.plan.per_process * self.world
                spent += 1
                if budget is not None and spent >= budget:
                    self.save()
                    return loss
            self.state.epoch += 1
            self.state.samples = 0
        self.save()
        return loss


def allocation(rank, world, folder, port, budget):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.set_num_threads(1)
    job = Job(folder)
    loss = job.run(epochs=1, budget=budget)
    if rank == 0:
        print(f"{world} processes: epoch {job.state.epoch} step {job.state.steps} loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


def main():
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(allocation, args=(2, folder, 29761, 20), nprocs=2)
        mp.spawn(allocation, args=(3, folder, 29762, None), nprocs=3)


if __name__ == "__main__":
    main()
