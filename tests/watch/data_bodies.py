"""What the watched ranks of test_data.py do. Lines are found by their comment, not by number."""

from __future__ import annotations

import itertools
import json
import os
import pickle
import random
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    Subset,
    TensorDataset,
)

FOLDER = Path(os.environ.get("DDPDOCTOR_RUN_DIR", "."))


class Files(Dataset[int]):
    """A list of paths, in an order of this rank's own."""

    def __init__(self, paths: list[str]) -> None:
        self.paths = paths

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> int:
        return index


class ByRank(Files):
    """Knows its rank."""

    def __getitem__(self, index: int) -> int:
        return index * dist.get_world_size() + dist.get_rank()


class Stream(IterableDataset[Tensor]):
    """Six samples."""

    def __iter__(self) -> Iterator[Tensor]:
        return iter(torch.arange(6).float())


class Awkward(Dataset[int]):
    """Raises wherever the doctor might look."""

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        raise RuntimeError("do not look")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("do not compare")

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int:
        return index


def train_and_evaluate() -> None:
    """Two epochs of training by a sampler, and a look at a Subset without gradients."""
    dist.init_process_group("gloo")
    data = TensorDataset(torch.arange(22.0).view(11, 2))
    sampler = DistributedSampler(data, seed=5)  # the sampler
    loader = DataLoader(data, batch_size=2, sampler=sampler)  # the loader
    held = Subset(data, [8, 3, 10])  # the subset
    net = DistributedDataParallel(nn.Linear(2, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for (x,) in loader:  # the loop
            net(x).sum().backward()
            optimizer.step()
    with torch.no_grad():
        for _ in DataLoader(held, batch_size=2):
            pass
    del net, optimizer
    dist.destroy_process_group()


def try_before_training() -> None:
    """Two passes over one set: one is left before anything is trained, by the other one is."""
    dist.init_process_group("gloo")
    rows = TensorDataset(torch.arange(24.0).view(12, 2))
    tried, trained = DataLoader(rows, batch_size=3), DataLoader(rows, batch_size=3)
    net = DistributedDataParallel(nn.Linear(2, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for (x,) in itertools.islice(tried, 2):
        net.module(x)
    for number, (x,) in enumerate(trained):
        net(x).sum().backward()
        optimizer.step()
        if number == 1:
            for (y,) in tried:
                net.module(y)
        if number == 2:
            break
    for (x,) in tried:
        net.module(x)
    del net, optimizer
    dist.destroy_process_group()


def iterate_in_many_ways() -> None:
    """A pass that is left, one by persistent workers, a stream, lists of files, awkward sets."""
    rank = int(os.environ["RANK"])
    plain = DataLoader(list(range(40)), batch_size=2)
    for _ in itertools.islice(plain, 5):
        pass
    persistent = DataLoader(list(range(8)), batch_size=2, num_workers=1, persistent_workers=True)
    assert [len(list(persistent)) for _ in range(2)] == [4, 4]
    del persistent
    assert len(list(DataLoader(Stream(), batch_size=4))) == 2
    paths = [f"/node-{rank}/a/{name}.png" for name in "xyz"]
    list(DataLoader(Files(paths[rank:] + paths[:rank])))
    assert len(list(DataLoader(Awkward()))) == 4
    assert sorted(int(i) for i in DataLoader(Files(paths), shuffle=True)) == [0, 1, 2]
    assert len(list(DataLoader([1, 2, 3], batch_size=None))) == 3
    sampler = DistributedSampler([0] * 8, num_replicas=2, rank=rank)
    batches = BatchSampler(sampler, batch_size=2, drop_last=False)
    assert len(list(DataLoader([0] * 8, batch_sampler=batches))) == 2


class Shuffled:
    """Shuffles by its seed, and by its epoch as far as it is told."""

    def __init__(self, *, at_once: bool) -> None:
        self.epoch, self.at_once = 0, at_once

    def __iter__(self) -> Iterator[int]:
        return iter(self._order()) if self.at_once else (each for each in self._order())

    def _order(self) -> list[int]:
        order = list(range(12))
        random.Random(7 + self.epoch).shuffle(order)  # shuffled
        return order


def shuffle_by_the_users_own_sampler() -> None:
    """Three passes each, of which the first two are of one epoch."""
    dist.init_process_group("gloo")
    samples = torch.arange(12.0)
    model = DistributedDataParallel(nn.Linear(1, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for at_once in (True, False):
        for workers in (0, 1):
            sampler = Shuffled(at_once=at_once)
            loader = DataLoader(TensorDataset(samples), 4, sampler=sampler, num_workers=workers)
            for sampler.epoch in (0, 0, 1):
                for (batch,) in loader:
                    model(batch[:, None]).mean().backward()
                    optimizer.step()
    del model, optimizer
    dist.destroy_process_group()


def preview_on_rank_0() -> None:
    """Three orders of the samples, and a look at some of them after each, on rank 0."""
    dist.init_process_group("gloo")
    model = DistributedDataParallel(nn.Linear(1, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    random.seed(5)
    for _ in range(3):
        order = list(range(8))
        random.shuffle(order)  # the order
        for number in order[:4]:
            model(torch.tensor([[float(number)]])).mean().backward()
            optimizer.step()
        if dist.get_rank() == 0:
            random.sample(order, 2)  # the preview
        random.Random(3).shuffle(order)
    del model, optimizer
    dist.destroy_process_group()


def deal_by_rank() -> None:
    """A dataset that deals samples out by rank itself."""
    dist.init_process_group("gloo")
    list(DataLoader(ByRank(["a", "b"])))
    assert sorted(RandomSampler(range(8))) == list(range(8))
    dist.barrier()
    dist.destroy_process_group()


def join() -> None:
    """Uneven inputs on purpose."""
    dist.init_process_group("gloo")
    net = DistributedDataParallel(nn.Linear(2, 1))
    loader = DataLoader(torch.ones(2 + dist.get_rank(), 2))
    with Join([net]):
        for x in loader:
            net(x).sum().backward()
    del net
    dist.destroy_process_group()


def touch_files() -> None:
    """Save and load by every library, make and remove folders, fail, and load a state."""
    data = FOLDER / "data"
    data.mkdir()  # the mkdir
    np.save(data / "a.npy", np.ones(3))  # the numpy save
    np.load(data / "a.npy")
    with (data / "b.pkl").open("wb") as file:
        pickle.dump({"epoch": 1}, file)  # the pickle dump
    with (data / "c.json").open("w") as text:
        json.dump([1], text)
    net = nn.Linear(2, 2)
    torch.save({f"module.{k}": v for k, v in net.state_dict().items()}, data / "d.pt")
    net.load_state_dict(torch.load(data / "d.pt"), strict=False)  # the state
    torch.optim.SGD(net.parameters(), lr=0.1).load_state_dict(
        torch.optim.SGD(net.parameters(), lr=0.1).state_dict()
    )
    (data / "d.pt").unlink()
    tempfile.tempdir = None  # so that it tries the folder again
    with tempfile.NamedTemporaryFile() as temporary:
        temporary.write(b"nothing of the job's")
    (data / "of another").touch()
    (data / "of another").unlink()
    for number in range(200):
        np.load(data / "a.npy")  # the loop of loads
        if number == 150:
            (data / "none").unlink(missing_ok=True)  # after many
        else:
            (data / "none").unlink(missing_ok=True)
    try:
        torch.save(net, FOLDER / "missing" / "e.pt")
    except RuntimeError:
        shutil.rmtree(data)


def warn_as_without_the_doctor() -> None:
    """The text of a warning names the line that torch means, not one of ours."""
    warnings.simplefilter("always")
    list(DataLoader([1, 2], pin_memory=True))
