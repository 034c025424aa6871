"""Training that is cut in the middle and goes on from a checkpoint, with the
random state of every process. The chief writes, all of them read.
"""
import os
import shutil
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Run:
    def __init__(self, folder):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.path = os.path.join(folder, "last.pt")
        torch.manual_seed(1 + self.rank)
        net = nn.Sequential(nn.Linear(5, 20), nn.Dropout(0.2), nn.Tanh(), nn.Linear(20, 1))
        self.model = DDP(net)
        self.opt = torch.optim.Adam(self.model.parameters(), lr=1e-2)
        self.gen = torch.Generator().manual_seed(600 + self.rank)
        self.step = 0

    def train(self, until):
        while self.step < until:
            x = torch.randn(32, 5, generator=self.gen)
            loss = (self.model(x).squeeze(1) - x.prod(1)).pow(2).mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.step += 1
        return loss.item()

    def save(self):
        states = [None] * self.world if self.rank == 0 else None
        mine = {"data": self.gen.get_state(), "torch": torch.get_rng_state()}
        dist.gather_object(mine, states, dst=0)
        if self.rank == 0:
            tmp = self.path + ".tmp"
            torch.save(
                {
                    "model": self.model.module.state_dict(),
                    "opt": self.opt.state_dict(),
                    "step": self.step,
                    "rng": states,
                },
                tmp,
            )
            os.replace(tmp, self.path)
        dist.barrier()

    def load(self):
        ckpt = torch.load(self.path)
        self.model.module.load_state_dict(ckpt["model"])
        self.opt.load_state_dict(ckpt["opt"])
        self.step = ckpt["step"]
        self.gen.set_state(ckpt["rng"][self.rank]["data"])
        torch.set_rng_state(ckpt["rng"][self.rank]["torch"])


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    where = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(where, src=0)

    whole = Run(where[0])
    whole.train(20)
    whole.save()
    loss_whole = whole.train(60)

    again = Run(where[0])
    again.load()
    loss_again = again.train(60)
    print(f"[{rank}] straight {loss_whole:.6f} resumed {loss_again:.6f}", flush=True)

    # nobody may still be reading when the folder goes
    dist.barrier()
    if rank == 0:
        shutil.rmtree(where[0])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
