import os
import tempfile
from dataclasses import dataclass, field
from datetime import datetime


def _stamp():
    return datetime.now().strftime("%Y%m%d_%H%M%S_%f")


@dataclass
class Settings:
    root: str = os.path.join(tempfile.gettempdir(), "cxr_runs")
    run: str = field(default_factory=_stamp)
    classes: int = 4
    size: int = 12
    n_train: int = 320
    n_val: int = 80
    batch: int = 20
    epochs: int = 4
    lr: float = 3e-3
    seed: int = 8

    @property
    def folder(self):
        return os.path.join(self.root, self.run)
