from dataclasses import dataclass, field
from typing import List


@dataclass
class DataCfg:
    n_train: int = 96
    n_val: int = 24
    size: int = 16
    n_classes: int = 3
    seed: int = 5


@dataclass
class OptimCfg:
    lr: float = 2e-3
    weight_decay: float = 1e-4
    betas: List[float] = field(default_factory=lambda: [0.9, 0.99])


@dataclass
class Cfg:
    data: DataCfg = field(default_factory=DataCfg)
    optim: OptimCfg = field(default_factory=OptimCfg)
    width: int = 12
    batch_size: int = 8
    epochs: int = 3
    save_every: int = 1
    work_dir: str = ""
