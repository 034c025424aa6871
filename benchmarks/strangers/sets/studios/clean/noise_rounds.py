"""Score matching on 2-D rings; the noise range of every round is drawn anew (random search
over sigma_max as in population training, but with one population member)."""
import random
from contextlib import contextmanager

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

ROUNDS, STEPS, BATCH = 4, 40, 128


@contextmanager
def group():
    dist.init_process_group("gloo")
    try:
        yield dist.get_rank(), dist.get_world_size()
    finally:
        dist.destroy_process_group()


def rings(n, g):
    r = torch.randint(1, 3, (n,), generator=g).float()
    a = 6.2832 * torch.rand(n, generator=g)
    return torch.stack([r * a.cos(), r * a.sin()], 1) + 0.03 * torch.randn(n, 2, generator=g)


class Score(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 2))

    def forward(self, x, sigma):
        return self.net(torch.cat([x, sigma.log()], 1)) / sigma


def propose(rng, old):
    """A new noise range near the last one that worked."""
    hi = old["hi"] * rng.choice([0.7, 1.0, 1.4])
    return {"lo": 0.02, "hi": min(max(hi, 0.3), 4.0), "weight": rng.choice(["flat", "sq"])}


def agree(setting):
    box = [setting]
    dist.broadcast_object_list(box, src=0)
    return box[0]


def dsm(net, x, setting, g):
    u = torch.rand(len(x), 1, generator=g)
    sigma = setting["lo"] * (setting["hi"] / setting["lo"]) ** u
    eps = torch.randn(x.shape, generator=g)
    err = (net(x + sigma * eps, sigma) * sigma + eps).pow(2).sum(1, keepdim=True)
    if setting["weight"] == "sq":
        err = err * sigma
    return err.mean()


def play(rank, world):
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(500 + rank)
    rng = random.Random(rank)
    net = DDP(Score())
    ema = AveragedModel(net.module, multi_avg_fn=get_ema_multi_avg_fn(0.98))
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    best, setting = float("inf"), {"lo": 0.02, "hi": 1.0, "weight": "flat"}
    for rnd in range(ROUNDS):
        trial = agree(propose(rng, setting))
        for _ in range(STEPS):
            loss = dsm(net, rings(BATCH, g), trial, g)
            opt.zero_grad()
            loss.backward()
            opt.step()
            ema.update_parameters(net.module)
        with torch.no_grad():
            probe = {"lo": 0.02, "hi": 2.0, "weight": "flat"}
            val = dsm(ema.module, rings(1024, g), probe, g)
        dist.all_reduce(val)
        val = val.item() / world
        if val < best:
            best, setting = val, trial
        if rank == 0:
            print(f"round {rnd} sigma_max {trial['hi']:.2f} {trial['weight']} probe {val:.4f} best {best:.4f}", flush=True)


if __name__ == "__main__":
    with group() as (rank, world):
        play(rank, world)
