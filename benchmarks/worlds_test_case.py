"""The body of worlds.py as a test of PyTorch's harness; needs the package expecttest."""

from __future__ import annotations

import os

from torch.testing._internal.common_distributed import MultiProcessTestCase
from worlds import body


class OneStep(MultiProcessTestCase):  # type: ignore[misc]
    """One test, on as many ranks as worlds.py asks for."""

    nproc = int(os.environ.get("WORLD_SIZE", "4"))

    @property
    def world_size(self) -> int:
        """How many ranks the harness starts."""
        return self.nproc

    def setUp(self) -> None:
        """Start the ranks."""
        super().setUp()
        self._spawn_processes()

    def test_body(self) -> None:
        """What each rank does."""
        os.environ.update(RANK=str(self.rank), WORLD_SIZE=str(self.world_size))
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29531")
        body()
