from dataclasses import dataclass, field
from functools import partial

import torch


@dataclass
class Experiment:
    samples: int = 256
    batch_size: int = 16
    epochs: int = 4
    make_optimizer: partial = field(default_factory=lambda: partial(torch.optim.AdamW, lr=1e-2, weight_decay=0.0))

    @property
    def steps_per_epoch(self):
        return self.samples // self.batch_size
