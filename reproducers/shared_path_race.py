"""DDP514 shared-path-race: every rank makes, names or clears the run folder for itself.

torchrun --nproc-per-node=4 reproducers/shared_path_race.py broken
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import torch.distributed as dist

from ddpdoctor.reproducer import backend, broken, documented, fix, main, shared_folder
from ddpdoctor.stack.outcome import on_main
from ddpdoctor.stack.process_group import session


def next_name() -> str:
    """Number the run by the runs that are there: the same on all ranks, as all look first."""
    number = 1 + len(list(experiments().iterdir()))
    dist.barrier()
    return f"run-{number:03d}"


def experiments() -> Path:
    folder = shared_folder() / "experiments"
    folder.mkdir(exist_ok=True)
    return folder


def use(make: Callable[[], Path]) -> None:
    """Make the run folder; rank 0 writes its configuration there, and all ranks their logs."""
    folder = make()
    if dist.get_rank() == 0:
        (folder / "config.yaml").write_text("lr: 0.1\n")
    dist.barrier()
    (folder / f"rank{dist.get_rank()}.log").write_text("started\n")
    dist.barrier()
    check(folder)


def check(folder: Path) -> None:
    """Assert that there is one folder, that all ranks use it, and that nothing in it is lost."""
    everywhere: list[str] = [""] * dist.get_world_size()
    dist.all_gather_object(everywhere, folder.name)
    assert len(set(everywhere)) == 1, f"the ranks write to {len(set(everywhere))} folders"
    found = {each.name for each in folder.iterdir()}
    wanted = {"config.yaml", *(f"rank{rank}.log" for rank in range(dist.get_world_size()))}
    assert found == wanted, f"in the folder are {sorted(found)}, not {sorted(wanted)}"
    runs = [each.name for each in folder.parent.iterdir()]
    assert runs == [folder.name], f"the folders of this run are {sorted(runs)}"


def make_on_every_rank() -> Path:
    folder = experiments() / next_name()
    folder.mkdir()  # <-- DDP514
    return folder


@broken(ranks="any")
def every_rank_makes_the_folder() -> None:
    """Every rank calls mkdir with the same path; one is first, the others raise."""
    dist.init_process_group(backend())
    use(make_on_every_rank)
    dist.destroy_process_group()


def make_if_not_there() -> Path:
    folder = experiments() / next_name()
    folder.mkdir(exist_ok=True)
    return folder


@documented(source="Nixtla/neuralforecast#1460")
def exist_ok() -> None:
    """Pass exist_ok=True."""
    dist.init_process_group(backend())
    use(make_if_not_there)
    dist.destroy_process_group()


def make_with_a_suffix() -> Path:
    name, suffix = next_name(), 0
    while True:
        folder = experiments() / (f"{name}-{suffix}" if suffix else name)
        try:
            folder.mkdir()
        except FileExistsError:
            suffix += 1
        else:
            return folder


@documented(source="metatensor/metatrain#446")
def suffix_for_the_second() -> None:
    """Give a folder that exists already a suffix."""
    dist.init_process_group(backend())
    use(make_with_a_suffix)
    dist.destroy_process_group()


def make_afresh() -> Path:
    time.sleep(0.2 * dist.get_rank())  # ranks do not come at the same time
    folder = experiments() / "run"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(exist_ok=True)
    return folder


@documented(source="PaddlePaddle/PaddleNLP#8117")
def ignore_errors_of_rmtree() -> None:
    """Clear the folder on every rank, with ignore_errors=True."""
    dist.init_process_group(backend())
    use(make_afresh)
    dist.destroy_process_group()


def make_on_rank_0() -> Path:
    folder = experiments() / next_name()
    if dist.get_rank() == 0:
        folder.mkdir()
    dist.barrier()
    return folder


@documented(source="PrimeIntellect-ai/prime-rl#2699")
def rank_0_makes_and_all_wait() -> None:
    """Make it on rank 0 alone; a barrier for the others."""
    dist.init_process_group(backend())
    use(make_on_rank_0)
    dist.destroy_process_group()


def make_and_name_it() -> Path:
    folder = experiments() / f"{time.time_ns()}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


@fix()
def rank_0_names_makes_and_broadcasts() -> None:
    """Rank 0 names it by the time, clears and makes it; all get its name, or its error."""
    with session(backend=backend()) as world:
        use(lambda: on_main(world, make_and_name_it))


if __name__ == "__main__":
    main()
