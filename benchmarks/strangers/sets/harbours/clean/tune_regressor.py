"""Random search over the optimiser settings of a house price regressor, every trial on all workers."""
import argparse
import random

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Study:
    def __init__(self, space):
        self.space, self.trials = space, []
        self._rng = random.SystemRandom()

    def ask(self):
        return {name: 10 ** self._rng.uniform(lo, hi) for name, (lo, hi) in self.space.items()}

    def tell(self, params, value):
        self.trials.append((value, params))

    @property
    def best(self):
        return min(self.trials, key=lambda t: t[0])


def houses(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 8, generator=g)
    w = torch.linspace(-1, 1, 8)
    return x, (x @ w + 0.5 * x[:, 0] * x[:, 1] + 0.1 * torch.randn(n, generator=g)).unsqueeze(1)


def objective(params, steps):
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(8, 24), nn.Tanh(), nn.Linear(24, 1)))
    opt = torch.optim.SGD(model.parameters(), lr=params["lr"], weight_decay=params["wd"], momentum=0.9)
    x, y = houses(128, 60 + rank)
    for step in range(steps):
        i = step * 16 % 128
        loss = nn.functional.mse_loss(model(x[i:i + 16]), y[i:i + 16])
        opt.zero_grad()
        loss.backward()
        opt.step()
    vx, vy = houses(64, 5 + rank)
    with torch.no_grad():
        err = nn.functional.mse_loss(model(vx), vy)
    dist.all_reduce(err)
    return err.item() / dist.get_world_size()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=4)
    parser.add_argument("--steps", type=int, default=24)
    args = parser.parse_args()
    rank = dist.get_rank()
    study = Study({"lr": (-3, -1), "wd": (-5, -2)})
    for number in range(args.trials):
        box = [study.ask() if rank == 0 else None]
        dist.broadcast_object_list(box, src=0)
        params = box[0]
        value = objective(params, args.steps)
        study.tell(params, value)
        print(f"[{rank}] trial {number} value {value:.4f} lr {params['lr']:.5f} wd {params['wd']:.5f}", flush=True)
    value, params = study.best
    if rank == 0:
        print(f"best value {value:.4f} with {params}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
