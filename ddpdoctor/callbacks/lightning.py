"""`Trainer(callbacks=[Watch()])`, of Lightning."""

from __future__ import annotations

from typing import Any

from ddpdoctor.watch import start

try:
    from lightning.pytorch.callbacks import Callback
except ImportError:
    from pytorch_lightning.callbacks import Callback


class Watch(Callback):  # type: ignore[misc]
    """Watches each rank: where it is made, and where a spawned rank is set up."""

    def __init__(self) -> None:
        super().__init__()
        start()

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Begin in a rank that has not run the script itself."""
        start()
