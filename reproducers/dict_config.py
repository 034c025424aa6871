"""DDP101 dict-config: `setup_distributed(config)` runs while config is still a dict.

torchrun --nproc-per-node=4 reproducers/dict_config.py broken
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch.distributed as dist
from pydantic import BaseModel, ConfigDict, ValidationError

from ddpdoctor.reproducer import backend, broken, documented, fix, main
from ddpdoctor.stack.process_group import session

# What the caller passes. The rate is text because YAML reads 1e-3 so.
CONFIG: dict[str, Any] = {"distributed": True, "batch_size": 64, "learning_rate": "1e-3"}


class TrainingConfig(BaseModel):
    """What the training needs to know."""

    distributed: bool = False
    batch_size: int = 32
    learning_rate: float = 1e-3


class FrozenConfig(TrainingConfig):
    """The same, but nobody changes it later and no misspelt key passes."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def setup_distributed(config: TrainingConfig) -> int:
    """Join the process group and return the number of ranks."""
    if not config.distributed:  # <-- DDP101
        return 1
    dist.init_process_group(backend())
    return dist.get_world_size()


def check(config: TrainingConfig, world_size: int) -> None:
    """Assert that the group is complete, and that all ranks hold one parsed configuration."""
    assert world_size == int(os.environ["WORLD_SIZE"]), f"{world_size} ranks joined"
    assert isinstance(config.learning_rate, float), f"learning_rate is {config.learning_rate!r}"
    everywhere: list[dict[str, Any]] = [{}] * world_size
    dist.all_gather_object(everywhere, config.model_dump())
    assert all(other == everywhere[0] for other in everywhere), f"configs differ: {everywhere}"


def is_refused(action: Callable[[], object]) -> bool:
    """Say whether pydantic refuses this."""
    try:
        action()
    except ValidationError:
        return True
    return False


@broken()
def set_up_before_parsing() -> None:
    """Join the group, then turn the dict into a TrainingConfig."""
    config: Any = CONFIG
    world_size = setup_distributed(config)
    config = TrainingConfig(**config)
    check(config, world_size)
    dist.destroy_process_group()


@documented(source="000 error 2")
def parse_before_setting_up() -> None:
    """Turn the dict into a TrainingConfig, then join the group."""
    config = TrainingConfig(**CONFIG)
    world_size = setup_distributed(config)
    check(config, world_size)
    dist.destroy_process_group()


@fix()
def parse_and_freeze_at_the_entry() -> None:
    """Parse into a frozen model first; a session then owns the group."""
    config = FrozenConfig(**CONFIG)
    assert is_refused(lambda: setattr(config, "distributed", False)), "a late change was accepted"
    assert is_refused(lambda: FrozenConfig(ditsributed=True)), "a misspelt option was accepted"
    with session(distributed=config.distributed, backend=backend()) as world:
        check(config, world.world_size)


if __name__ == "__main__":
    main()
