"""Encoder with a feature cache; a controller keeps the cache of all processes of a stage in step."""
import os
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


@dataclass
class Topology:
    rank: int
    world: int
    per_stage: int = 2
    stage: int = field(init=False)
    peers: list = field(init=False)

    def __post_init__(self):
        self.stage = self.rank // self.per_stage
        self.peers = list(range(self.stage * self.per_stage, (self.stage + 1) * self.per_stage))


class CacheController:
    """Keeps the size of the feature cache the same for all processes of a stage."""

    def __init__(self, topo, limit=64):
        self.limit, self.size = limit, 0
        self.group = dist.new_group(ranks=topo.peers, backend="gloo")

    def reserve(self, n):
        want = torch.tensor([n])
        dist.all_reduce(want, op=dist.ReduceOp.MIN, group=self.group)
        granted = min(int(want), self.limit - self.size)
        self.size = (self.size + granted) % self.limit
        return granted


def build(cfg):
    torch.manual_seed(cfg["seed"])
    layers, d = [], cfg["dim"]
    for _ in range(cfg["depth"]):
        layers += [nn.Linear(d, d), nn.SiLU()]
    return nn.Sequential(*layers, nn.Linear(d, 3))


CFG = dict(seed=0, dim=16, depth=2, steps=20, lr=0.02)


def main():
    dist.init_process_group("gloo")
    topo = Topology(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
    controller = CacheController(topo)
    model = DDP(build(CFG))
    opt = torch.optim.SGD(model.parameters(), lr=CFG["lr"])
    g = torch.Generator().manual_seed(topo.rank)
    for step in range(CFG["steps"]):
        x = torch.randn(8, CFG["dim"], generator=g)
        controller.reserve(8)
        loss = nn.functional.cross_entropy(model(x), x[:, :3].argmax(1))
        opt.zero_grad()
        loss.backward()
        opt.step()
    if topo.rank == 0:
        print(f"loss {loss.item():.4f}, cache {controller.size}", flush=True)
    dist.barrier()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
