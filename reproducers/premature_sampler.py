"""DDP201 premature-sampler: a `DistributedSampler` is built before the process group.

torchrun --nproc-per-node=4 reproducers/premature_sampler.py broken
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler

from ddpdoctor.reproducer import backend, broken, documented, fix, main
from ddpdoctor.stack.process_group import session
from ddpdoctor.stack.samplers import TrainingSampler, exact_shard

LENGTHS = (60, 61)  # one that 2, 3, 4, 5 and 6 ranks divide, and one that none does
DOCUMENTED_LENGTHS = {"train": 9748, "val": 1218, "test": 1220}


def make_loader(length: int) -> DataLoader[int]:
    """Build a loader over the samples 0 to length-1, as a data function does."""
    samples = list(range(length))
    return DataLoader(samples, batch_size=8, sampler=DistributedSampler(samples))  # <-- DDP201


def setup_distributed() -> None:
    """Join the process group, or keep the one that is there."""
    if not dist.is_initialized():
        dist.init_process_group(backend())


def check_shards(batches: Iterable[torch.Tensor], length: int, *, padded: bool = False) -> None:
    """Assert that the ranks together saw every sample once.

    With `padded`, as many samples as equal shards need may come twice, and no more.
    """
    world_size = dist.get_world_size()
    shards: list[list[int]] = [[]] * world_size
    dist.all_gather_object(shards, [sample for batch in batches for sample in batch.tolist()])
    seen = Counter(sample for shard in shards for sample in shard)
    twice = sorted(sample for sample, times in seen.items() if times > 1)
    missing = sorted(set(range(length)) - set(seen))
    allowed = -length % world_size if padded else 0
    assert not missing, f"no rank saw {missing} of {length} samples"
    assert seen.total() == length + allowed, f"of {length} samples, {twice} came more than once"


@broken()
def sampler_before_the_group() -> None:
    """Build the loaders in train_from_list, join in train_main."""
    loaders = [make_loader(length) for length in LENGTHS]
    setup_distributed()
    for loader, length in zip(loaders, LENGTHS, strict=True):
        check_shards(loader, length, padded=True)
    dist.destroy_process_group()


@documented(source="000 error 1")
def join_in_the_data_function() -> None:
    """Join in train_from_list; setup_distributed reuses the group."""
    if not dist.is_initialized():
        rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        dist.init_process_group(backend(), rank=rank, world_size=world_size)
    group = dist.group.WORLD
    loaders = [make_loader(length) for length in LENGTHS]
    setup_distributed()
    assert dist.group.WORLD is group, "the group was replaced"
    for loader, length in zip(loaders, LENGTHS, strict=True):
        check_shards(loader, length, padded=True)
    dist.destroy_process_group()


@documented(source="000 expected output")
def shards_of_the_documented_sizes() -> None:
    """Shard the documented 9748, 1218 and 1220 samples, each once."""
    setup_distributed()
    for length in DOCUMENTED_LENGTHS.values():
        check_shards(make_loader(length), length)
    dist.destroy_process_group()


@documented(source="000 troubleshooting")
def check_the_environment() -> None:
    """Check torchrun's variables, torch and CUDA; change nothing else."""
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"):
        assert name in os.environ, f"{name} is not set: not started by torchrun"
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    assert version >= (2, 6), f"torch is {torch.__version__}"
    print(f"CUDA: {torch.cuda.is_available()}, {torch.cuda.device_count()} devices")
    sampler_before_the_group()


@fix()
def session_then_stack_samplers() -> None:
    """Open the session first; deal the samples without padding."""
    with session(backend=backend()) as world:
        for length in LENGTHS:
            batches = TrainingSampler(
                length, batch_size=8, num_replicas=world.world_size, rank=world.rank
            )
            check_shards((torch.tensor(batch) for batch in batches), length)
            check_shards([torch.tensor(exact_shard(length, world.rank, world.world_size))], length)


@fix()
def name_rank_and_world_size() -> None:
    """Build the sampler first, but tell it num_replicas and rank."""
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    loaders = []
    for length in LENGTHS:
        samples = list(range(length))
        sampler = DistributedSampler(samples, num_replicas=world_size, rank=rank)
        loaders.append(DataLoader(samples, batch_size=8, sampler=sampler))
    setup_distributed()
    for loader, length in zip(loaders, LENGTHS, strict=True):
        check_shards(loader, length, padded=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
