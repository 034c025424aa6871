import json
import os
import shutil
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel

CFG = json.loads('{"lr": 0.01, "batch": 32, "half": 25, "end": 50, "drop": 0.2}')


class Job:
    def __init__(self, folder):
        self.rank = dist.get_rank()
        self.common = os.path.join(folder, "common.pt")
        self.private = os.path.join(folder, f"stream{self.rank}.pt")
        torch.manual_seed(1)
        net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(CFG["drop"]), nn.Linear(32, 1))
        self.net = net
        self.opt = torch.optim.Adam(net.parameters(), lr=CFG["lr"])
        self.step = 0
        torch.manual_seed(500 + self.rank)

    def load(self):
        state = torch.load(self.common)
        self.net.load_state_dict(state["net"])
        self.opt.load_state_dict(state["opt"])
        self.step = state["step"]
        torch.set_rng_state(torch.load(self.private))

    def save(self):
        torch.save(torch.get_rng_state(), self.private)
        if self.rank == 0:
            torch.save({"net": self.net.state_dict(), "opt": self.opt.state_dict(), "step": self.step}, self.common)
        dist.barrier()

    def run(self, until):
        ddp = DistributedDataParallel(self.net)
        while self.step < until:
            x = torch.randn(CFG["batch"], 8)
            y = x[:, :2].prod(1, keepdim=True) + x[:, 2:3]
            loss = nn.functional.mse_loss(ddp(x), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.step += 1
        return loss.item()


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    where = [tempfile.mkdtemp(prefix="streams_") if rank == 0 else None]
    dist.broadcast_object_list(where, src=0)

    whole = Job(where[0])
    whole.run(CFG["end"])

    first = Job(where[0])
    first.run(CFG["half"])
    first.save()
    second = Job(where[0])
    second.load()
    loss = second.run(CFG["end"])

    gap = max((a - b).abs().max().item() for a, b in zip(whole.net.parameters(), second.net.parameters()))
    print(f"[{rank}] own loss {loss:.4f}, resumed against uninterrupted: {gap:.2e}", flush=True)
    dist.barrier()
    if rank == 0:
        shutil.rmtree(where[0])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
