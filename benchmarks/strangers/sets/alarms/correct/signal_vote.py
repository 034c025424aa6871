"""A signal reaches one process; all of them leave at the same step."""
import os
import signal

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

STOP = False


def on_signal(signum, frame):
    global STOP
    STOP = True


class Loop:
    def __init__(self, vote_every=3):
        self.rank, self.vote_every = dist.get_rank(), vote_every
        torch.manual_seed(0)
        self.model = DDP(nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1)))
        self.opt = torch.optim.Adam(self.model.parameters(), lr=1e-2)

    def agreed_to_stop(self, step):
        if step % self.vote_every:
            return False
        votes = torch.tensor([1 if STOP else 0], dtype=torch.int32)
        dist.all_reduce(votes)
        return bool(votes.item())

    def run(self, n):
        g = torch.Generator().manual_seed(self.rank)
        for step in range(1, n + 1):
            x = torch.randn(8, 4, generator=g)
            loss = (self.model(x) - x.norm(dim=1, keepdim=True)).pow(2).mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            if self.rank == 1 and step == 13:
                os.kill(os.getpid(), signal.SIGUSR2)
            if self.agreed_to_stop(step):
                break
        if self.rank == 0:
            torch.save(self.model.module.state_dict(), f"stopped_at_{step}.pt")
        dist.barrier()
        return step


if __name__ == "__main__":
    signal.signal(signal.SIGUSR2, on_signal)
    dist.init_process_group("gloo")
    at = Loop().run(50)
    print(f"rank {dist.get_rank()} left at step {at}", flush=True)
    dist.destroy_process_group()
