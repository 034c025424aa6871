from dataclasses import dataclass, field
from typing import List


@dataclass
class Stage:
    epoch: int
    unfreeze: List[str]
    lr: float


@dataclass
class Plan:
    stages: List[Stage] = field(default_factory=lambda: [
        Stage(0, ["head"], 1e-2),
        Stage(2, ["trunk.4"], 3e-3),
        Stage(4, ["trunk.2", "trunk.0"], 1e-3),
    ])
    epochs: int = 6

    def at(self, epoch):
        return next((s for s in self.stages if s.epoch == epoch), None)
