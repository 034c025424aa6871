"""`Trainer(..., callbacks=[Watch()])`, of transformers."""

from __future__ import annotations

from transformers import TrainerCallback

from ddpdoctor.watch import start


class Watch(TrainerCallback):  # type: ignore[misc]
    """Watches each rank from where it is made, be the process group joined or not."""

    def __init__(self) -> None:
        super().__init__()
        start()
