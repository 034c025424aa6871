"""Who loads the batches, and how many of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils.data import DataLoader

from ddpdoctor.stack.process_group import World
from ddpdoctor.stack.samplers import TrainingSampler
from ddpdoctor.stack.stopping import heed_only_the_parent

MOST_WORKERS = 8


def make_loader(
    samples: Sequence[Any],
    sampler: TrainingSampler,
    collate: Callable[[Sequence[Any]], Any],
    num_workers: int | None,
    world: World,
) -> DataLoader[Any]:
    """Return a loader of this rank's batches. Its workers are started anew in each epoch.

    So they see what `samples.set_epoch` has changed, which workers that persist would not.
    """
    return DataLoader(
        samples,  # type: ignore[arg-type]  # a sequence is all that a loader asks for
        batch_sampler=sampler,
        collate_fn=collate,
        num_workers=default_workers(world) if num_workers is None else num_workers,
        worker_init_fn=heed_only_the_parent,
        pin_memory=world.device.type == "cuda",
        # Each pass over a loader draws a number to seed its workers. Drawn from the global
        # generator, a run that was resumed would be one draw ahead of one that was not.
        generator=torch.Generator(),
    )


def default_workers(world: World) -> int:
    """Return how many processes this rank can feed itself with.

    Its share of the CPUs that it may use, which a container or a scheduler makes fewer than the
    machine has, less the one that it runs on. On the CPU the training itself needs them all.
    """
    if world.device.type == "cpu":
        return 0
    ranks_here = int(os.environ.get("LOCAL_WORLD_SIZE", 0)) or min(
        world.world_size, max(torch.cuda.device_count(), 1)
    )
    return max(0, min(MOST_WORKERS, len(os.sched_getaffinity(0)) // ranks_here - 1))
