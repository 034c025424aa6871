"""Small denoiser on 2-D point clouds, in legs: each leg takes up where the last one's state file ended."""
import argparse
import os
import random
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def spirals(n=512):
    g = torch.Generator().manual_seed(2)
    t = torch.rand(n, generator=g) * 6.28
    arm = torch.randint(0, 2, (n,), generator=g) * 3.14
    return torch.stack([t * torch.cos(t + arm), t * torch.sin(t + arm)], 1) / 6.28


class Denoiser(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 2))

    def forward(self, x, t):
        return self.net(torch.cat([x, t[:, None]], 1))


def rng_snapshot():
    return {"python": random.getstate(), "torch": torch.get_rng_state()}


def rng_restore(state):
    random.setstate(state["python"])
    torch.set_rng_state(state["torch"])


def shared_dir():
    box = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(box, src=0)
    return box[0]


class Leg:
    def __init__(self, args, rank, world):
        self.args, self.rank, self.world = args, rank, world
        self.file = os.path.join(args.out, "state.pt")
        random.seed(args.seed + rank)
        torch.manual_seed(args.seed)
        self.model = DDP(Denoiser())
        self.opt = torch.optim.Adam(self.model.parameters(), lr=2e-3)
        torch.manual_seed(args.seed + rank)
        self.step = 0
        self.points = spirals()[rank::world]
        if os.path.exists(self.file):
            self.load()

    def save(self):
        rng = [None] * self.world
        dist.all_gather_object(rng, rng_snapshot())
        if self.rank == 0:
            torch.save({"model": self.model.module.state_dict(), "opt": self.opt.state_dict(),
                        "step": self.step, "rng": rng}, self.file)
        dist.barrier()

    def load(self):
        blob = torch.load(self.file, weights_only=False)
        self.model.module.load_state_dict(blob["model"])
        self.opt.load_state_dict(blob["opt"])
        self.step = blob["step"]
        rng_restore(blob["rng"][self.rank])

    def run(self, steps):
        for _ in range(steps):
            x0 = self.points[torch.randint(0, len(self.points), (self.args.batch,))]
            t = torch.rand(len(x0))
            eps = torch.randn_like(x0)
            xt = (1 - t)[:, None] * x0 + t[:, None] * eps
            loss = (self.model(xt, t) - (eps - x0)).square().mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.step += 1
        print(f"rank {self.rank} step {self.step} loss {loss.item():.4f} mean t {t.mean():.4f}", flush=True)
        self.save()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--legs", type=int, default=2)
    p.add_argument("--steps", type=int, default=60)
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--seed", type=int, default=77)
    p.add_argument("--out")
    args = p.parse_args()
    dist.init_process_group("gloo")
    args.out = args.out or shared_dir()
    os.makedirs(args.out, exist_ok=True)
    for _ in range(args.legs):
        Leg(args, dist.get_rank(), dist.get_world_size()).run(args.steps)
    dist.destroy_process_group()
