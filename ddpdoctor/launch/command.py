"""A world of one process that becomes a command: what it starts belongs to the world's keeper."""

from __future__ import annotations

import os
from collections.abc import Sequence

_OF_RANKS = ("RANK", "WORLD_SIZE", "LOCAL_", "GROUP_", "ROLE_", "MASTER_", "TORCHELASTIC_", "PET_")


def become(command: Sequence[str]) -> None:
    """Be this command, which is no rank, though it was started like one. Raises OSError."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(_OF_RANKS)}
    os.execvpe(command[0], [*command], environment)
