"""DDP407 missing-wait: ranks read what rank 0 has not written yet.

torchrun --nproc-per-node=4 reproducers/missing_wait.py broken
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor

from ddpdoctor.reproducer import backend, broken, documented, fix, main, shared_folder
from ddpdoctor.stack import checkpoint
from ddpdoctor.stack.errors import CheckpointError, StackError
from ddpdoctor.stack.outcome import together
from ddpdoctor.stack.process_group import World, session

PREPARATION = 0.2  # seconds that rank 0 needs for a pass over the data
Statistics = dict[str, Tensor]


def compute() -> Statistics:
    """Return mean and deviation of the data set, after a long pass over it."""
    time.sleep(PREPARATION)
    data = torch.arange(1000.0)
    return {"mean": data.mean(), "std": data.std()}


def check(prepare: Callable[[Path], Statistics]) -> None:
    """Assert that all ranks normalise with the same, right statistics."""
    statistics = prepare(shared_folder() / "statistics.pt")
    means: list[float] = [0.0] * dist.get_world_size()
    dist.all_gather_object(means, statistics["mean"].item())
    assert set(means) == {499.5}, f"means, by rank: {means}"


def write_and_read(path: Path) -> Statistics:
    if dist.get_rank() == 0:
        torch.save(compute(), path)
    statistics: Statistics = torch.load(path)  # <-- DDP407
    return statistics


@broken(ranks="nonzero")
def read_at_once() -> None:
    """Rank 0 writes the statistics, all read them."""
    dist.init_process_group(backend())
    check(write_and_read)
    dist.destroy_process_group()


def sleep_and_read(path: Path) -> Statistics:
    if dist.get_rank() != 0:
        time.sleep(PREPARATION / 2)
    return write_and_read(path)


@documented(source="pytorch/pytorch#68320, code that is around")
def sleep_for_a_while() -> None:
    """The others sleep; today the work takes twice as long."""
    dist.init_process_group(backend())
    check(sleep_and_read)
    dist.destroy_process_group()


def wait_and_read(path: Path) -> Statistics:
    if dist.get_rank() == 0:
        torch.save(compute(), path)
    dist.barrier()
    statistics: Statistics = torch.load(path)
    return statistics


@documented(source="pytorch/pytorch#68320")
def barrier_before_reading() -> None:
    """Rank 0 writes, barrier, all read."""
    dist.init_process_group(backend())
    check(wait_and_read)
    dist.destroy_process_group()


def main_process_first(path: Path) -> Statistics:
    if dist.get_rank() != 0:
        dist.barrier()
    if not path.exists():
        torch.save(compute(), path)
    if dist.get_rank() == 0:
        dist.barrier()
    statistics: Statistics = torch.load(path)
    return statistics


@documented(source="azure/torchtune-azureml, torch_distributed_zero_first")
def one_barrier_in_two_places() -> None:
    """The others wait before the block, rank 0 after it."""
    dist.init_process_group(backend())
    check(main_process_first)
    dist.destroy_process_group()


def poll_for_a_signal(path: Path) -> Statistics:
    signal = path.with_name("statistics.done")
    if dist.get_rank() == 0:
        torch.save(compute(), path)
        signal.touch()
    while not signal.exists():
        time.sleep(0.01)
    statistics: Statistics = torch.load(path)
    return statistics


@documented(source="mosaicml/composer#2071")
def busy_wait_for_a_signal_file() -> None:
    """Rank 0 touches a second file when it is done; the others poll for it."""
    dist.init_process_group(backend())
    check(poll_for_a_signal)
    dist.destroy_process_group()


def write_and_share(path: Path, world: World) -> Statistics:
    with together(world):
        statistics = compute() if world.is_main else {}
    checkpoint.save(statistics, path, world)
    return checkpoint.load(path, world)


@fix()
def share_the_outcome_after_the_write() -> None:
    """The stack's save returns on every rank when the file is there."""
    with session(backend=backend()) as world:
        check(lambda path: write_and_share(path, world))


@fix()
def failed_write_is_shared_too() -> None:
    """The same where rank 0 cannot write: all ranks raise, none waits."""
    with session(backend=backend()) as world:
        refusals: list[str] = [""] * world.world_size
        dist.all_gather_object(refusals, refusal(world))
        assert refusals[0], "the statistics were saved in a folder that is not there"
        assert len(set(refusals)) == 1, f"the ranks raised {refusals}"


def refusal(world: World) -> str:
    """Return what saving to a folder that is not there raises."""
    try:
        write_and_share(shared_folder() / "no such folder" / "statistics.pt", world)
    except CheckpointError as error:
        return str(error)
    except StackError as error:
        return f"{type(error).__name__}: {error}"
    return ""


if __name__ == "__main__":
    main()
