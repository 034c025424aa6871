# style: checkpoints per rank, resume on all ranks, atomic rank-0 save
# nproc: 2
import os
import shutil
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

FOLDER = Path("runs") / "experiment"


class State:
    def __init__(self):
        torch.manual_seed(0)
        self.net = nn.Linear(5, 2)
        self.ddp = DDP(self.net)
        self.optimizer = torch.optim.SGD(self.ddp.parameters(), lr=0.1, momentum=0.9)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 1)
        self.epoch = 0

    def save(self):
        rank = dist.get_rank()
        torch.save({"rng": torch.get_rng_state()}, FOLDER / f"rng-rank{rank}.pt")
        if rank == 0:
            state = {
                "net": self.net.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "scheduler": self.scheduler.state_dict(),
                "epoch": self.epoch,
            }
            temporary = FOLDER / f"last.{os.getpid()}.tmp"
            torch.save(state, temporary)
            os.replace(temporary, FOLDER / "last.pt")
        dist.barrier()

    def resume(self):
        found = torch.tensor(int((FOLDER / "last.pt").exists()))
        dist.broadcast(found, src=0)
        if not found:
            return
        state = torch.load(FOLDER / "last.pt", map_location="cpu")
        self.net.load_state_dict(state["net"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        self.epoch = state["epoch"]
        own = torch.load(FOLDER / f"rng-rank{dist.get_rank()}.pt")
        torch.set_rng_state(own["rng"])


def train(state, loader, until):
    while state.epoch < until:
        loader.sampler.set_epoch(state.epoch)
        for x, y in loader:
            state.optimizer.zero_grad()
            nn.functional.cross_entropy(state.ddp(x), y).backward()
            state.optimizer.step()
        state.scheduler.step()
        state.epoch += 1
        state.save()


def main():
    dist.init_process_group("gloo")
    if dist.get_rank() == 0:
        shutil.rmtree(FOLDER, ignore_errors=True)
    dist.barrier()
    FOLDER.mkdir(parents=True, exist_ok=True)
    x = torch.randn(32, 5, generator=torch.Generator().manual_seed(2))
    data = TensorDataset(x, (x.sum(dim=1) > 0).long())
    loader = DataLoader(data, batch_size=4, sampler=DistributedSampler(data, seed=11))
    for until in (2, 4):
        state = State()
        state.resume()
        train(state, loader, until)
    print(f"rank {dist.get_rank()}: {state.net.weight.sum().item():.6f}")
    del state


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
