"""Sea level forecast. The validation record lives on the first node only."""
import os
import shutil
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau

LAGS = 24


def endless(rank, size=32):
    g = torch.Generator().manual_seed(rank)
    while True:
        phase = 6.28 * torch.rand(size, 1, generator=g)
        level = torch.sin(phase + 0.5 * torch.arange(LAGS + 1)) + 0.05 * torch.randn(size, LAGS + 1, generator=g)
        yield level[:, :LAGS], level[:, LAGS:]


class Run:
    def __init__(self):
        self.rank = dist.get_rank()
        self.first = self.rank == 0
        self.net = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(LAGS, 32), nn.ReLU(), nn.Linear(32, 1)))
        self.opt = torch.optim.AdamW(self.net.parameters(), lr=5e-3)
        self.sched = ReduceLROnPlateau(self.opt, factor=0.5, patience=0)
        self.record = next(endless(999, 256)) if self.first else None
        self.best, self.folder = float("inf"), None
        if self.first:
            self.folder = tempfile.mkdtemp(prefix="tide_")

    def validate(self):
        score = torch.zeros(1)
        if self.first:
            net = self.net.module.eval()
            with torch.no_grad():
                score += nn.functional.mse_loss(net(self.record[0]), self.record[1])
            net.train()
            if score.item() < self.best:
                torch.save(net.state_dict(), os.path.join(self.folder, "best.pt"))
        dist.broadcast(score, src=0)
        return score.item()

    def fit(self, rounds=12, steps=20, patience=3):
        data, bad = endless(self.rank), 0
        for r in range(rounds):
            for _, (x, y) in zip(range(steps), data):
                loss = nn.functional.mse_loss(self.net(x), y)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
            score = self.validate()
            self.sched.step(score)
            bad = 0 if score < self.best else bad + 1
            self.best = min(self.best, score)
            if self.first:
                print(f"round {r} mse {score:.5f} lr {self.opt.param_groups[0]['lr']:.1e}", flush=True)
            if bad >= patience:
                break

    def restore_best(self):
        state = [torch.load(os.path.join(self.folder, "best.pt")) if self.first else None]
        dist.broadcast_object_list(state, src=0)
        self.net.module.load_state_dict(state[0])
        if self.first:
            shutil.rmtree(self.folder)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    torch.manual_seed(17 * dist.get_rank())
    run = Run()
    run.fit()
    run.restore_best()
    dist.destroy_process_group()
