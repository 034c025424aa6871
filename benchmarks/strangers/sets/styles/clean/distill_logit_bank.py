"""Knowledge distillation with the teacher's logits kept in a scratch folder."""
import argparse
import contextlib
import shutil
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

DIM, CLASSES, TEMP = 24, 6, 3.0


@contextlib.contextmanager
def scratch_folder(prefix):
    """One temporary folder for all processes; gone afterwards."""
    box = [tempfile.mkdtemp(prefix=prefix) if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(box, src=0)
    try:
        yield Path(box[0])
        dist.barrier()
    finally:
        if dist.get_rank() == 0:
            shutil.rmtree(box[0])


def mlp(*sizes):
    layers = []
    for i, o in zip(sizes, sizes[1:]):
        layers += [nn.Linear(i, o), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class Shelf:
    """Examples come in shards: many short recordings first, the long ones at the end."""

    def __init__(self, n=10, seed=0):
        self.sizes = [64 if k < n // 2 else 4096 for k in range(n)]
        self.seed = seed

    def __len__(self):
        return len(self.sizes)

    def features(self, k):
        g = torch.Generator().manual_seed(self.seed * 1000 + k)
        return torch.randn(self.sizes[k], DIM, generator=g)


class LogitBank:
    def __init__(self, folder, shelf):
        self.folder, self.shelf = folder, shelf

    def path(self, k):
        return self.folder / f"shard{k:03d}.pt"

    @torch.no_grad()
    def fill(self, teacher):
        for k in range(len(self.shelf)):
            torch.save(teacher(self.shelf.features(k)), self.path(k))

    def read(self, k):
        return self.shelf.features(k), torch.load(self.path(k))


def fit_teacher(shelf, steps=60):
    torch.manual_seed(0)
    rule = torch.randn(DIM, CLASSES)
    teacher = mlp(DIM, 64, CLASSES)
    opt = torch.optim.Adam(teacher.parameters(), lr=5e-3)
    for i in range(steps):
        x = shelf.features(i % len(shelf))[:256]
        loss = F.cross_entropy(teacher(x), (x @ rule).argmax(1))
        opt.zero_grad()
        loss.backward()
        opt.step()
    return teacher.eval()


def kd_loss(student, teacher):
    return F.kl_div(F.log_softmax(student / TEMP, 1), F.softmax(teacher / TEMP, 1), reduction="batchmean") * TEMP ** 2


def train(model, bank, args, rank, world):
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    g = torch.Generator().manual_seed(rank)
    for epoch in range(args.epochs):
        for k in range(len(bank.shelf)):
            x, target = bank.read(k)
            pick = torch.randperm(len(x), generator=g)[:32]
            loss = kd_loss(model(x[pick]), target[pick])
            opt.zero_grad()
            loss.backward()
            opt.step()
        if rank == 0:
            print(f"epoch {epoch} kd {loss.item():.4f}", flush=True)


@torch.no_grad()
def agreement(net, bank, rank, world):
    """How often student and teacher pick the same class, with noise-averaged student outputs."""
    share = len(bank.shelf) // world
    same = total = 0
    for k in range(rank * share, (rank + 1) * share):
        x, target = bank.read(k)
        votes = sum(net(x + 0.05 * torch.randn_like(x)).softmax(1) for _ in range(40))
        same += int((votes.argmax(1) == target.argmax(1)).sum())
        total += len(x)
    return same, total


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--lr", type=float, default=3e-3)
    args = p.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    shelf = Shelf()
    with scratch_folder("kdbank_") as folder:
        bank = LogitBank(folder, shelf)
        if rank == 0:
            bank.fill(fit_teacher(shelf))
        dist.barrier()
        torch.manual_seed(1)
        student = mlp(DIM, 24, CLASSES)
        model = DDP(student)
        torch.manual_seed(2 + rank)
        train(model, bank, args, rank, world)
        same, total = agreement(student, bank, rank, world)
    score = torch.tensor([same, total])
    dist.all_reduce(score)
    if rank == 0:
        print(f"agreement {score[0].item() / score[1].item():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
