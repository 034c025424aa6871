"""Records how the data is sharded."""

from __future__ import annotations

import functools
from typing import Any

from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.log import Log
from ddpdoctor.watch.places import users_frame


def install(log: Log) -> None:
    """Wrap the construction of torch's DistributedSampler."""
    from torch.utils.data import distributed

    sampler_type: Any = distributed.DistributedSampler
    original = sampler_type.__init__

    @functools.wraps(original)
    def construct(sampler: Any, *args: Any, **kwargs: Any) -> None:
        original(sampler, *args, **kwargs)
        _note(log, sampler)

    sampler_type.__init__ = construct


@harmless
def _note(log: Log, sampler: Any) -> None:
    log.write(
        "sampler",
        length=len(sampler.dataset),
        num_replicas=sampler.num_replicas,
        rank=sampler.rank,
        seed=sampler.seed,
        shuffle=sampler.shuffle,
        place=users_frame(),
    )
