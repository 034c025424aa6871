"""Learning-rate search under a wall-clock budget; rank 0 keeps the clock and the journal.

    torchrun --nproc_per_node=2 budgeted_search.py --budget 4
"""
import contextlib
import json
import tempfile
import time
from pathlib import Path

import click
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Subset, TensorDataset


def is_main():
    return dist.get_rank() == 0


def from_main(value):
    box = [value]
    dist.broadcast_object_list(box, src=0)
    return box[0]


@contextlib.contextmanager
def main_first():
    if not is_main():
        dist.barrier()
    yield
    if is_main():
        dist.barrier()


class Journal:
    def __init__(self, folder):
        self.path = Path(folder) / "trials.jsonl"

    def add(self, **entry):
        if not is_main():
            return
        with self.path.open("a") as f:
            f.write(json.dumps(entry) + "\n")


def load_data(folder):
    path = Path(folder) / "data.pt"
    with main_first():
        if not path.exists():
            g = torch.Generator().manual_seed(3)
            x = torch.randn(270, 6, generator=g)
            torch.save((x, (x[:, 0] * x[:, 1] > 0).long()), path)
        x, y = torch.load(path)
    return TensorDataset(x, y)


@torch.no_grad()
def accuracy(model, data):
    rank, world = dist.get_rank(), dist.get_world_size()
    hits = torch.zeros(2)
    for x, y in DataLoader(Subset(data, range(rank, len(data), world)), batch_size=20):
        hits += torch.tensor([(model.module(x).argmax(1) == y).sum().item(), len(y)])
    dist.all_reduce(hits)
    return (hits[0] / hits[1]).item()


def trial(lr, train, val, deadline, epochs=6):
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 2)))
    opt = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    mine = Subset(train, range(dist.get_rank(), len(train), dist.get_world_size()))
    for epoch in range(epochs):
        for x, y in DataLoader(mine, batch_size=10, shuffle=True):
            opt.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            opt.step()
        if from_main(time.monotonic() > deadline):
            break
    return accuracy(model, val), epoch + 1


@click.command()
@click.option("--budget", default=4.0, help="seconds for all trials together")
@click.option("--trials", default=8)
def main(budget, trials):
    dist.init_process_group("gloo")
    with contextlib.ExitStack() as stack:
        folder = from_main(stack.enter_context(tempfile.TemporaryDirectory()) if is_main() else None)
        data = load_data(folder)
        train, val = Subset(data, range(200)), Subset(data, range(200, 270))
        journal, best, deadline = Journal(folder), (0.0, None), time.monotonic() + budget
        rng = torch.Generator().manual_seed(int(time.time()))
        for k in range(trials):
            lr = from_main(float(10 ** (-3 + 2.5 * torch.rand(1, generator=rng))) if is_main() else None)
            score, epochs = trial(lr, train, val, deadline)
            journal.add(trial=k, lr=lr, score=score, epochs=epochs)
            best = max(best, (score, lr))
            if from_main(time.monotonic() > deadline):
                break
        if is_main():
            print(f"{len(journal.path.read_text().splitlines())} trials, best accuracy {best[0]:.3f} at lr {best[1]:.4f}", flush=True)
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
