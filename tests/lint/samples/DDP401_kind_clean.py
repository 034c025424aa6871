"""The device of each rank is another, and of one kind."""

import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Trainer:
    def __init__(self, kind):
        self.rank = dist.get_rank()
        self.device = torch.device(type="cuda", index=self.rank)
        self.scaler = torch.amp.GradScaler("cuda") if self.device.type == "cuda" else None
        self.spare = torch.device(f"{kind}:{self.rank}" if torch.cuda.is_available() else "cpu")
        self.named = torch.device(kind, self.rank)
        self.net = DistributedDataParallel(torch.nn.Linear(3, 1).to(self.device))

    def step(self, batch):
        loss = self.net(batch.to(self.device)).mean()
        if self.scaler is not None:
            self.scaler.scale(loss).backward()
        else:
            loss.backward()
        if self.named.type == "cuda":
            dist.all_reduce(loss)
        if self.spare.type != "cpu":
            dist.barrier()


def main(rank, world):
    dist.init_process_group("nccl", rank=rank, world_size=world)
    trainer = Trainer(sys.argv[1])
    for _ in range(4):
        trainer.step(torch.rand(2, 3))


if __name__ == "__main__":
    torch.multiprocessing.spawn(main, args=(2,), nprocs=2)
