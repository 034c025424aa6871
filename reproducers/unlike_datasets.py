"""DDP217 unlike-datasets: each rank shuffles the list of samples by itself before it is dealt out.

torchrun --nproc-per-node=4 reproducers/unlike_datasets.py broken
"""

from __future__ import annotations

import random
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from ddpdoctor.reproducer import backend, broken, fix, main, own_device
from ddpdoctor.stack.process_group import session, wrap

LENGTH = 120


class Records(Dataset[int]):
    """Numbered records of several sources, mixed."""

    def __init__(self, mix: Callable[[list[int]], None]) -> None:
        self.records = list(range(LENGTH))
        mix(self.records)

    def __len__(self) -> int:
        return LENGTH

    def __getitem__(self, index: int) -> int:
        return self.records[index]


def train(mix: Callable[[list[int]], None]) -> None:
    """Train for an epoch; assert that the ranks have seen each record once between them."""
    with session(backend=backend()) as world:
        records = Records(mix)
        sampler: DistributedSampler[int] = DistributedSampler(records)
        loader = DataLoader(records, batch_size=5, sampler=sampler)
        model = wrap(nn.Linear(1, 1), world)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
        mine: list[int] = []
        for batch in loader:
            model(batch[:, None].float().to(own_device())).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
            mine += batch.tolist()
        seen: list[list[int]] = [[]] * dist.get_world_size()
        dist.all_gather_object(seen, mine)
        distinct = {record for each in seen for record in each}
        assert len(distinct) == LENGTH, f"{LENGTH - len(distinct)} of {LENGTH} were never seen"


def by_chance(records: list[int]) -> None:
    random.Random(dist.get_rank()).random()
    random.seed(dist.get_rank() + 1)  # as processes are that seed nothing
    random.shuffle(records)  # <-- DDP217


@broken(ranks="all")
def shuffled_by_each() -> None:
    """Mix the records with a generator that nobody has seeded."""
    train(by_chance)


def by_seed(records: list[int]) -> None:
    random.Random(0).shuffle(records)


@fix(source="QwenLM/Qwen3-VL#1971")
def shuffled_by_one_seed() -> None:
    """Mix them with a generator of one fixed seed."""
    train(by_seed)


@fix()
def left_to_the_sampler() -> None:
    """Leave them in their order: the sampler shuffles."""
    train(lambda records: None)


if __name__ == "__main__":
    main()
