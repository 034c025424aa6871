"""Runoff model that survives a preempted job: stage one runs two epochs, stage two continues.

    torchrun --nproc_per_node=2 main.py
"""
import os
import shutil
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from network import Runoff, catchment
from state import StateFile


class Session:
    """One submission of the job."""

    def __init__(self, folder, seed):
        self.rank = dist.get_rank()
        torch.manual_seed(seed)
        data = catchment()
        self.sampler = DistributedSampler(data, seed=3)
        self.loader = DataLoader(data, 20, sampler=self.sampler)
        self.model = DDP(Runoff())
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=4e-3)
        self.file = StateFile(folder, self.rank)
        self.start = 0
        self.restore()

    def restore(self):
        saved = self.file.read()
        if saved is not None:
            self.model.module.load_state_dict(saved["net"])
            self.optimizer.load_state_dict(saved["opt"])
            self.start = saved["epoch"] + 1
        start = torch.tensor(self.start)
        dist.broadcast(start, src=0)
        self.start = int(start)

    def run(self, until):
        for epoch in range(self.start, until):
            self.sampler.set_epoch(epoch)
            for forcing, flow in self.loader:
                loss = nn.functional.mse_loss(self.model(forcing), flow)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            if self.rank == 0:
                print(f"epoch {epoch} mse {loss.item():.5f}", flush=True)
            self.file.save(self.model, self.optimizer, epoch)
        dist.barrier()


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    shared = [tempfile.mkdtemp(prefix="runoff_") if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(shared, src=0)
    Session(shared[0], seed=1).run(until=2)
    Session(shared[0], seed=2).run(until=5)
    if dist.get_rank() == 0:
        shutil.rmtree(shared[0])
    dist.barrier()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
