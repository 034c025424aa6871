"""Trainer class that resumes, saves atomically and stops together."""

import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, random_split
from torch.utils.data.distributed import DistributedSampler

CHECKPOINT = "last.pt"


class Trainer:
    def __init__(self, model, data, hours):
        dist.init_process_group("nccl", timeout=timedelta(hours=2))
        self.rank = dist.get_rank()
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        generator = torch.Generator().manual_seed(0)
        self.train_set, self.val_set = random_split(data, [0.9, 0.1], generator=generator)
        self.sampler = DistributedSampler(self.train_set)
        self.loader = DataLoader(self.train_set, batch_size=8, sampler=self.sampler)
        self.model = DistributedDataParallel(model.cuda())
        self.optimizer = torch.optim.AdamW(self.model.parameters())
        self.deadline = time.time() + hours * 3600

    def resume(self):
        if os.path.exists(CHECKPOINT):  # <- DDP513
            state = torch.load(CHECKPOINT, map_location="cpu")
            self.model.module.load_state_dict(state["model"])

    def save(self):
        if self.rank == 0:
            state = {"model": self.model.module.state_dict()}
            torch.save(state, f"{CHECKPOINT}.tmp")
            os.replace(f"{CHECKPOINT}.tmp", CHECKPOINT)
        dist.barrier()

    def late(self):
        late = torch.tensor(float(time.time() > self.deadline)).cuda()
        dist.broadcast(late, src=0)
        return bool(late)

    def fit(self, epochs):
        self.resume()
        for epoch in range(epochs):
            self.sampler.set_epoch(epoch)
            for batch in self.loader:
                loss = self.model(batch).mean()
                loss.backward()
                self.optimizer.step()
                self.optimizer.zero_grad()
                if self.late():
                    return
            self.save()


if __name__ == "__main__":
    trainer = Trainer(torch.nn.Linear(8, 8), list(range(100)), 1)
    trainer.fit(3)
    dist.destroy_process_group()
