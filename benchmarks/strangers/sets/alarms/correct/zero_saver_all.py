"""Sharded optimizer: consolidation everywhere, file on one process."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP


class Saver:
    def __init__(self, path, every):
        self.path, self.every = path, every
        self.owner = 1 if dist.get_world_size() > 1 else 0

    def maybe(self, model, opt, step):
        if step % self.every:
            return
        opt.consolidate_state_dict(to=self.owner)
        if dist.get_rank() == self.owner:
            tmp = self.path + ".tmp"
            torch.save({"model": model.module.state_dict(), "opt": opt.state_dict(), "step": step}, tmp)
            os.replace(tmp, self.path)

    def restore(self, model, opt):
        dist.barrier()
        state = torch.load(self.path, weights_only=False)
        model.module.load_state_dict(state["model"])
        opt.load_state_dict(state["opt"])
        return state["step"]


def make():
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 8)))
    return model, ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.AdamW, lr=2e-3)


def train(model, opt, saver, first, last):
    g = torch.Generator().manual_seed(dist.get_rank() + 10 * first)
    for step in range(first + 1, last + 1):
        x = torch.randn(12, 8, generator=g)
        loss = (model(x) - x.cumsum(1)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        saver.maybe(model, opt, step)
    return loss.item()


def main():
    saver = Saver("zero.pt", every=5)
    train(*make(), saver, 0, 12)
    model, opt = make()
    step = saver.restore(model, opt)
    loss = train(model, opt, saver, step, 20)
    if dist.get_rank() == 0:
        print(f"continued from step {step}, loss {loss:.4f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
