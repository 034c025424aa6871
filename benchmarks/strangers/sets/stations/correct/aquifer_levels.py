"""Groundwater level regression.  torchrun --nproc_per_node 2 aquifer_levels.py"""
import json
import os
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def wells(seed, n):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 8, generator=g)
    y = (x[:, :4].sum(1) - x[:, 4:].prod(1)).unsqueeze(1)
    return TensorDataset(x, y + 0.05 * torch.randn(n, 1, generator=g))


class LevelNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 40), nn.BatchNorm1d(40), nn.ReLU(), nn.Linear(40, 1))

    def forward(self, x):
        return self.body(x)


class Trainer:
    def __init__(self, out_dir):
        self.rank = int(os.environ["RANK"])
        self.world = int(os.environ["WORLD_SIZE"])
        torch.manual_seed(100 + self.rank)
        self.model = DDP(LevelNet())
        self.opt = torch.optim.Adam(self.model.parameters(), lr=5e-3)
        train = wells(1, 601)
        self.sampler = DistributedSampler(train, seed=2)
        self.loader = DataLoader(train, 32, sampler=self.sampler)
        self.test = wells(2, 150) if self.rank == 0 else None
        self.out_dir = out_dir
        self.best = float("inf")

    @property
    def main(self):
        return self.rank == 0

    @torch.no_grad()
    def score(self):
        net = self.model.module.eval()
        x, y = self.test.tensors
        value = (net(x) - y).pow(2).mean().sqrt().item()
        net.train()
        return value

    def residual_histogram(self, residuals):
        counts = torch.histc(residuals, bins=6, min=-1.5, max=1.5)
        slots = [torch.zeros_like(counts) for _ in range(self.world)] if self.main else None
        dist.gather(counts, slots, dst=0)
        return torch.stack(slots).sum(0).int().tolist() if self.main else None

    def epoch(self, number):
        self.sampler.set_epoch(number)
        residuals = []
        for x, y in self.loader:
            out = self.model(x)
            loss = nn.functional.mse_loss(out, y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            residuals.append((out - y).detach().flatten())
        histogram = self.residual_histogram(torch.cat(residuals))
        if self.main:
            rmse = self.score()
            print(f"epoch {number} rmse {rmse:.4f} residuals {histogram}", flush=True)
            if rmse < self.best:
                self.best = rmse
                torch.save(self.model.module.state_dict(), os.path.join(self.out_dir, "best.pt"))
                with open(os.path.join(self.out_dir, "best.json"), "w") as f:
                    json.dump({"epoch": number, "rmse": rmse}, f)
        dist.barrier()

    def finish(self):
        box = [None]
        if self.main:
            box[0] = torch.load(os.path.join(self.out_dir, "best.pt"))
        dist.broadcast_object_list(box, src=0)
        self.model.module.load_state_dict(box[0])
        total = sum(p.double().sum() for p in self.model.parameters()).detach()
        spread = [torch.zeros_like(total) for _ in range(self.world)]
        dist.all_gather(spread, total)
        assert all(torch.equal(s, spread[0]) for s in spread)


def main():
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as out_dir:
        trainer = Trainer(out_dir)
        for number in range(3):
            trainer.epoch(number)
        trainer.finish()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
