"""Disruption predictor for a tokamak, trained under a batch system.

The batch system tells the first process of the job that the allocation runs
out (SIGUSR1, as with ``#SBATCH --signal=USR1``).  `launch` plays that part.
"""
import multiprocessing as mp
import os
import signal
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

WORLD, PORT = 2, "29753"
MAX_STEPS, NOTICE_AT, BATCH = 3000, 60, 32


class Allocation:
    """Remembers whether the batch system has asked us to come to an end."""

    def __init__(self):
        self._ending = False
        signal.signal(signal.SIGUSR1, self._notice)

    def _notice(self, signum, frame):
        self._ending = True

    def ending(self):
        flag = torch.tensor(int(self._ending))
        dist.all_reduce(flag, op=dist.ReduceOp.MAX)
        return bool(flag)


class Shots:
    def __init__(self, rank):
        self.g = torch.Generator().manual_seed(800 + rank)

    def batch(self):
        signal_ = torch.randn(BATCH, 3, 32, generator=self.g).cumsum(2) * 0.2
        label = (signal_[:, 0, -8:].std(1) + 0.5 * signal_[:, 1, -1] > 0.4).float()
        return signal_, label


class Predictor(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(3, 12, 5, stride=2), nn.ReLU(), nn.Conv1d(12, 12, 5, stride=2), nn.ReLU())
        self.head = nn.Linear(12, 1)

    def forward(self, x):
        return self.head(self.conv(x).amax(2)).squeeze(1)


class Trainer:
    def __init__(self, rank, folder):
        self.rank, self.folder = rank, folder
        torch.manual_seed(6)
        self.model = DDP(Predictor())
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=2e-3)
        self.shots = Shots(rank)
        self.step = 0

    def train_step(self):
        x, y = self.shots.batch()
        loss = nn.functional.binary_cross_entropy_with_logits(self.model(x), y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.step += 1
        return loss.item()

    def save(self):
        dist.barrier()
        if self.rank == 0:
            state = {"model": self.model.module.state_dict(), "opt": self.opt.state_dict(), "step": self.step}
            torch.save(state, os.path.join(self.folder, "requeue.pt"))
        dist.barrier()

    def fit(self, allocation, progress):
        while self.step < MAX_STEPS:
            loss = self.train_step()
            progress.value = self.step
            if self.rank == 0 and self.step % 20 == 0:
                print(f"step {self.step} loss {loss:.4f}", flush=True)
            if allocation.ending():
                break
        self.save()
        if self.rank == 0:
            print(f"state written at step {self.step}", flush=True)


def worker(rank, folder, progress):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=PORT)
    allocation = Allocation()
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=WORLD)
    Trainer(rank, folder).fit(allocation, progress)
    dist.destroy_process_group()


def launch(folder):
    ctx = mp.get_context("spawn")
    progress = [ctx.Value("i", 0) for _ in range(WORLD)]
    procs = [ctx.Process(target=worker, args=(r, folder, progress[r])) for r in range(WORLD)]
    for p in procs:
        p.start()
    while progress[0].value < NOTICE_AT and procs[0].is_alive():
        procs[0].join(0.02)
    os.kill(procs[0].pid, signal.SIGUSR1)
    for p in procs:
        p.join()
    return max(p.exitcode for p in procs)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        raise SystemExit(launch(folder))
