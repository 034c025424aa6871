from dataclasses import dataclass, field
from typing import Dict

import torch
import torch.distributed as dist

from fitter import Fitter


@dataclass
class Config:
    epochs: int = 14
    batch_size: int = 16
    optim: Dict = field(default_factory=lambda: dict(lr=0.2, momentum=0.9))
    plateau: Dict = field(default_factory=lambda: dict(factor=0.3, patience=1, threshold=1e-2))


if __name__ == "__main__":
    dist.init_process_group("gloo")
    f = Fitter(Config())
    f.fit()
    if dist.get_rank() == 0:
        print("final lr", f.opt.param_groups[0]["lr"])
    dist.destroy_process_group()
