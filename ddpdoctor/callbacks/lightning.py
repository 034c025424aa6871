"""`Trainer(callbacks=[Watch()])`, of Lightning."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from ddpdoctor.watch import start

# The names of one library. `pip install lightning` installs it under both, with other classes: it
# is the one that is imported, the first where both are, else the one that is there.
_NAMES = sorted(
    ("lightning.pytorch", "pytorch_lightning"), key=lambda name: name not in sys.modules
)
try:
    Callback: Any = import_module(f"{_NAMES[0]}.callbacks").Callback
except ImportError:
    Callback = import_module(f"{_NAMES[1]}.callbacks").Callback


class Watch(Callback):  # type: ignore[misc]
    """Watches each rank: where it is made, and where a spawned rank is set up."""

    def __init__(self) -> None:
        super().__init__()
        start()

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Begin in a rank that has not run the script itself."""
        start()
