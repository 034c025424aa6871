"""Mixture-of-experts classifier whose router load is watched by a small monitor."""
import collections
import dataclasses
import json
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


@dataclasses.dataclass
class Conf:
    experts: int = 4
    width: int = 16
    steps: int = 24
    flush_every: int = 8
    capacity: float = 0.45
    lr: float = 0.05


class Monitor:
    """Collects named values during the steps and reports them for the whole job now and then."""

    def __init__(self):
        self.pending = collections.defaultdict(list)
        self.rows = []

    def add(self, name, value):
        self.pending[name].append(float(value))

    def flush(self, step):
        local = {k: sum(v) / len(v) for k, v in self.pending.items()}
        self.pending.clear()
        merged = self.combine(local)
        if merged:
            self.rows.append({"step": step, **merged})
        return merged

    def combine(self, local):
        parts = [None] * dist.get_world_size()
        dist.all_gather_object(parts, local)
        names = sorted({k for p in parts for k in p})
        return {k: max(p.get(k, 0.0) for p in parts) for k in names}


class SoftMoE(nn.Module):
    def __init__(self, cfg, monitor):
        super().__init__()
        self.cfg, self.monitor = cfg, monitor
        self.gate = nn.Linear(cfg.width, cfg.experts)
        self.experts = nn.ModuleList([nn.Sequential(nn.Linear(cfg.width, 32), nn.GELU(), nn.Linear(32, cfg.width))
                                      for _ in range(cfg.experts)])
        self.cls = nn.Linear(cfg.width, 3)

    def forward(self, x):
        w = self.gate(x).softmax(-1)
        share = F.one_hot(w.argmax(-1), self.cfg.experts).float().mean(0)
        for e, s in enumerate(share.tolist()):
            if s > self.cfg.capacity:
                self.monitor.add(f"overflow/{e}", s)
        y = torch.stack([ex(x) for ex in self.experts], 1)
        return self.cls((w.unsqueeze(-1) * y).sum(1))


def stream(rank, cfg):
    g = torch.Generator().manual_seed(40 + rank)
    centres = torch.eye(3, cfg.width) * 3
    while True:
        y = torch.randint(0, 3, (64,), generator=g)
        spread = 0.1 if rank == 0 else 4.0
        if rank == 0:
            y = y * 0 + 1
        yield centres[y] + spread * torch.randn(64, cfg.width, generator=g), y


def main(argv):
    cfg = Conf(**json.loads(argv[0])) if argv else Conf()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    monitor = Monitor()
    moe = DDP(SoftMoE(cfg, monitor))
    sgd = torch.optim.SGD(moe.parameters(), lr=cfg.lr)
    batches = stream(rank, cfg)
    for step in range(1, cfg.steps + 1):
        x, y = next(batches)
        loss = F.cross_entropy(moe(x), y)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        if step % cfg.flush_every == 0:
            stats = monitor.flush(step)
            if rank == 0:
                print(step, f"loss {loss.item():.3f}", json.dumps(stats), flush=True)
    dist.barrier()
    del moe
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1:])
