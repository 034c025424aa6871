"""First-break picking on seismic traces. A broken record ends the run early, but the state is always kept."""
import os
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class BadRecord(Exception):
    pass


class Survey:
    """Shots of one survey; every worker reads its own lines."""

    def __init__(self, rank, shots=40, traces=12, samples=64):
        g = torch.Generator().manual_seed(rank)
        self.pick = torch.randint(8, 56, (shots, traces), generator=g)
        t = torch.arange(samples)
        self.data = 0.2 * torch.randn(shots, traces, samples, generator=g)
        self.data += (t[None, None] >= self.pick[..., None]).float()
        if rank == 1:
            self.data[27] = float("nan")    # dead geophones

    def __len__(self):
        return len(self.pick)

    def read(self, i):
        if not torch.isfinite(self.data[i]).all():
            raise BadRecord(f"shot {i} has no valid trace")
        return self.data[i], self.pick[i]


class Trainer:
    def __init__(self, folder):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        torch.manual_seed(0)
        self.net = DDP(nn.Sequential(nn.Unflatten(1, (1, -1)), nn.Conv1d(1, 8, 9, padding=4), nn.ReLU(),
                                     nn.Conv1d(8, 1, 9, padding=4), nn.Flatten()))
        self.opt = torch.optim.Adam(self.net.parameters(), lr=5e-3)
        self.file = os.path.join(folder, f"picker_{os.environ['MASTER_PORT']}.pt")
        self.step = 0

    def train_step(self, traces, pick):
        loss = nn.functional.cross_entropy(self.net(traces), pick)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.step += 1
        return loss.item()

    def save(self):
        """Weights, and the position of every worker in its survey."""
        where = [torch.zeros(1, dtype=torch.long) for _ in range(self.world)]
        dist.all_gather(where, torch.tensor([self.step]))
        if self.rank == 0:
            torch.save({"net": self.net.module.state_dict(), "position": torch.cat(where)}, self.file)
        dist.barrier()

    def fit(self, survey):
        loss = float("nan")
        try:
            for i in range(len(survey)):
                traces, pick = survey.read(i)
                loss = self.train_step(traces, pick)
        except BadRecord as err:
            print(f"[worker {self.rank}] stopping: {err}", flush=True)
        finally:
            self.save()
        return loss


def main():
    trainer = Trainer(tempfile.gettempdir())
    loss = trainer.fit(Survey(trainer.rank))
    if trainer.rank == 0:
        print(f"stopped after {trainer.step} shots, loss {loss:.3f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
