"""Trainer with snapshots and mixed precision (python snapshot_gpt.py starts two workers)."""
import os
from dataclasses import asdict, dataclass

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


@dataclass
class TrainerConfig:
    max_epochs: int = 3
    batch_size: int = 16
    grad_norm_clip: float = 1.0
    snapshot_path: str = "snapshot.pt"
    use_amp: bool = True


@dataclass
class Snapshot:
    model_state: dict
    optimizer_state: dict
    finished_epoch: int


class Trainer:
    def __init__(self, cfg, model, optimizer, dataset, rank):
        self.cfg, self.rank, self.optimizer = cfg, rank, optimizer
        self.sampler = DistributedSampler(dataset)
        self.loader = DataLoader(dataset, cfg.batch_size, sampler=self.sampler)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 14, enabled=cfg.use_amp)
        self.model = DDP(model)

    def _run_batch(self, x, y):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.cfg.use_amp):
            loss = nn.functional.cross_entropy(self.model(x), y)
        self.optimizer.zero_grad(set_to_none=True)
        if self.cfg.use_amp:
            self.scaler.scale(loss).backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg.grad_norm_clip)
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg.grad_norm_clip)
            self.optimizer.step()
        return loss.item()

    def _save(self, epoch):
        snap = Snapshot(self.model.module.state_dict(), self.optimizer.state_dict(), epoch)
        torch.save(asdict(snap), self.cfg.snapshot_path)

    def train(self):
        for epoch in range(self.cfg.max_epochs):
            self.sampler.set_epoch(epoch)
            losses = [self._run_batch(x, y) for x, y in self.loader]
            if self.rank == 0:
                self._save(epoch)
                print(f"epoch {epoch} train loss {sum(losses) / len(losses):.4f}", flush=True)


def sequences(n=320):
    g = torch.Generator().manual_seed(6)
    start = torch.randint(0, 12, (n, 1), generator=g)
    x = (start + torch.arange(6)) % 12
    return TensorDataset(nn.functional.one_hot(x, 12).float().flatten(1), (start[:, 0] + 6) % 12)


def worker(rank, world, port):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "localhost", port
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(72, 48), nn.ReLU(), nn.Linear(48, 12))
    run(net, rank)
    dist.destroy_process_group()


def run(net, rank):
    opt = torch.optim.SGD(net.parameters(), lr=0.5, momentum=0.9)
    Trainer(TrainerConfig(), net, opt, sequences(), rank).train()


if __name__ == "__main__":
    mp.spawn(worker, args=(2, "29747"), nprocs=2)
