"""Long run on a preemptible partition: on SIGUSR1 save a restart file and leave."""
import os
import signal
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Preemption:
    def __init__(self, signum=signal.SIGUSR1):
        self.requested = False
        signal.signal(signum, self._handle)

    def _handle(self, signum, frame):
        self.requested = True


class Experiment:
    def __init__(self, steps=60):
        self.rank = dist.get_rank()
        self.steps, self.step = steps, 0
        self.preemption = Preemption()
        torch.manual_seed(1)
        self.model = DDP(nn.Sequential(nn.Linear(10, 40), nn.Tanh(), nn.Linear(40, 1)))
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.gen = torch.Generator().manual_seed(self.rank)

    def should_stop(self):
        flag = torch.tensor(float(self.preemption.requested))
        dist.all_reduce(flag, op=dist.ReduceOp.MAX)
        return bool(flag.item())

    def save(self, path="restart.pt"):
        if self.rank == 0:
            torch.save({"model": self.model.module.state_dict(), "step": self.step}, path)
        dist.barrier()

    def train_step(self):
        x = torch.randn(16, 10, generator=self.gen)
        loss = (self.model(x).squeeze(1) - x.pow(2).mean(1)).pow(2).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()

    def run(self):
        while self.step < self.steps:
            loss = self.train_step()
            self.step += 1
            scheduler_daemon(self.rank, self.step)
            if self.should_stop():
                print(f"rank {self.rank}: preempted at step {self.step}, loss {loss:.4f}", flush=True)
                self.save()
                return "requeue"
        self.save("final.pt")
        return "finished"


def scheduler_daemon(rank, step):
    # the batch system notifies the batch shell, which is the parent of the first task only
    if rank == 0 and step == 25:
        os.kill(os.getpid(), signal.SIGUSR1)
    time.sleep(0.005)


def main():
    dist.init_process_group("gloo")
    outcome = Experiment().run()
    print("outcome:", outcome, flush=True)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
