# style: functions, per-class evaluation
# nproc: 2
from collections import defaultdict

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

CLASSES = 6


def part(rank, count):
    generator = torch.Generator().manual_seed(rank)
    y = torch.randint(0, CLASSES - 2 * rank, (count,), generator=generator)
    x = torch.randn(count, 4, generator=generator) + y[:, None]
    return x, y


def train(model, x, y):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for part_x, part_y in zip(x.split(16), y.split(16)):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(part_x), part_y).backward()
        optimizer.step()


@torch.no_grad()
def recall_by_class(model, x, y):
    predicted = model.module(x).argmax(1)
    counts = defaultdict(lambda: torch.zeros(2))
    for label, guess in zip(y.tolist(), predicted.tolist()):
        counts[label] += torch.tensor([float(label == guess), 1.0])
    recall = {}
    for label in sorted(counts):  # <-- DDP418
        dist.all_reduce(counts[label])  # <-- DDP418
        hits, total = counts[label].tolist()
        recall[label] = hits / total
    return recall


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(4, 12), nn.ReLU(), nn.Linear(12, CLASSES)))
    train(model, *part(rank, 64))
    recall = recall_by_class(model, *part(rank, 48))
    dist.barrier()
    if rank == 0:
        print({label: round(value, 2) for label, value in recall.items()})
    del model
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
