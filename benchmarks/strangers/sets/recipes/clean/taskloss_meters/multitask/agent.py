import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from .data import MixedTasks
from .net import SharedNet


def across_workers(value):
    parts = [torch.zeros_like(value) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, value)
    return torch.stack(parts).mean().item()


def parse_losses(losses):
    """Sum for the backward pass and plain floats for the log."""
    total = sum(losses.values())
    log_vars = {"loss": total.detach().clone(), **{k: v.detach().clone() for k, v in losses.items()}}
    return total, {k: across_workers(v) for k, v in log_vars.items()}


class Agent:
    def __init__(self, cfg):
        self.cfg, self.rank = cfg, dist.get_rank()
        self.model = DistributedDataParallel(SharedNet(cfg))
        self.opt = torch.optim.Adam(self.model.parameters(), lr=cfg.lr)

    def losses(self, x, which):
        err = (self.model(x) - x[:, :3]).pow(2)
        out = {}
        for k, task in enumerate(self.cfg.tasks):
            rows = which == k
            out[task] = err[rows, k].sum() / rows.sum().clamp(min=1)
        return out

    def run(self):
        for it, (x, which) in enumerate(MixedTasks(self.cfg, self.rank), 1):
            total, log = parse_losses(self.losses(x, which))
            self.opt.zero_grad()
            total.backward()
            self.opt.step()
            if it % self.cfg.log_every == 0 and self.rank == 0:
                print(it, {k: round(v, 3) for k, v in log.items()}, flush=True)
        dist.barrier()
