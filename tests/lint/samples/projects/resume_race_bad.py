"""Trainer class that resumes, saves in place and stops early by itself."""

import atexit
import os
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, random_split
from torch.utils.data.distributed import DistributedSampler

CHECKPOINT = "last.pt"


def cleanup():
    dist.barrier()
    dist.destroy_process_group()


class Trainer:
    def __init__(self, model, data, hours):
        os.environ["NCCL_TIMEOUT"] = "7200"  # <-- DDP109
        try:
            dist.init_process_group("nccl")
        except RuntimeError:  # <-- DDP111
            print("not distributed")
        atexit.register(cleanup)  # <-- DDP409
        self.rank = dist.get_rank()
        torch.cuda.set_device(self.rank)  # <-- DDP106
        self.train_set, self.val_set = random_split(data, [0.9, 0.1])  # <-- DDP206
        self.sampler = DistributedSampler(self.train_set)  # <-- DDP203
        self.loader = DataLoader(self.train_set, batch_size=8, sampler=self.sampler)
        self.model = DistributedDataParallel(model.cuda())
        self.optimizer = torch.optim.AdamW(self.model.parameters())
        self.deadline = time.time() + hours * 3600

    def resume(self):
        if os.path.exists(CHECKPOINT):  # <- DDP513
            state = torch.load(CHECKPOINT)  # <-- DDP510
            self.model.module.load_state_dict(state["model"])

    def save(self):
        if self.rank == 0:
            state = {"model": self.model.module.state_dict()}
            torch.save(state, CHECKPOINT)  # <-- DDP503
            dist.barrier()  # <-- DDP401

    def fit(self, epochs):
        self.resume()
        for epoch in range(epochs):
            for batch in self.loader:
                loss = self.model.module(batch).mean()  # <-- DDP303
                loss.backward()
                self.optimizer.step()
                self.optimizer.zero_grad()
                if time.time() > self.deadline:  # <-- DDP405
                    return
            self.save()  # fine: every rank calls it


if __name__ == "__main__":
    Trainer(torch.nn.Linear(8, 8), list(range(100)), 1).fit(3)
