"""Behaviour cloning of a gait policy. Restarts from the shards that earlier jobs left in the run folder."""
import argparse
import os
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Policy(nn.Module):
    def __init__(self, obs=14, act=5):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(obs, 32), nn.Tanh(), nn.Linear(32, act))

    def forward(self, obs):
        return self.body(obs)


class CheckpointManager:
    """One file per worker: model, optimizer and step."""

    def __init__(self, root):
        self.root = Path(root)
        self.rank, self.world = dist.get_rank(), dist.get_world_size()

    def path(self, name):
        return self.root / f"{name}_world_size_{self.world}_rank_{self.rank}.pt"

    def save(self, model, optimizer, step):
        self.root.mkdir(parents=True, exist_ok=True)
        torch.save(model.module.state_dict(), self.path("model"))
        torch.save({"optimizer": optimizer.state_dict(), "step": step}, self.path("optim"))
        dist.barrier()

    def load(self, model, optimizer):
        model.module.load_state_dict(torch.load(self.path("model")))
        extra = torch.load(self.path("optim"))
        optimizer.load_state_dict(extra["optimizer"])
        return extra["step"]

    def has_checkpoint(self):
        return any(self.root.glob("model_world_size_*"))


def previous_job(root, workers=4, step=200):
    """Puts the files of last night's job on the four-card machine into the run folder."""
    torch.manual_seed(0)
    policy = Policy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
    policy(torch.zeros(1, 14)).sum().backward()
    optimizer.step()
    root.mkdir(parents=True, exist_ok=True)
    for r in range(workers):
        torch.save(policy.state_dict(), root / f"model_world_size_{workers}_rank_{r}.pt")
        torch.save({"optimizer": optimizer.state_dict(), "step": step}, root / f"optim_world_size_{workers}_rank_{r}.pt")


def demonstrations(n, gen):
    obs = torch.randn(n, 14, generator=gen)
    return obs, torch.stack([obs[:, 3 * k:3 * k + 2].mean(1).tanh() for k in range(5)], 1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--run", default=None)
    ap.add_argument("--steps", type=int, default=230)
    args = ap.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    run = Path(args.run or Path(tempfile.gettempdir()) / f"gait_{os.environ['MASTER_PORT']}")
    if rank == 0:
        previous_job(run)
    dist.barrier()

    model = DDP(Policy())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    ckpt = CheckpointManager(run)
    step = ckpt.load(model, optimizer) if ckpt.has_checkpoint() else 0
    gen = torch.Generator().manual_seed(rank)
    while step < args.steps:
        obs, act = demonstrations(32, gen)
        loss = (model(obs) - act).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if rank == 0 and step % 10 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
    ckpt.save(model, optimizer, step)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
