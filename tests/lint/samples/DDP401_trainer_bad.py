"""What ends an epoch sums the hits where its trainer is the first."""

import lightning.pytorch as pl
import torch
from torch import nn


class Tagger(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 2)
        self.hits = torch.zeros(1)

    def on_validation_epoch_end(self):
        if not self.trainer.is_global_zero:
            return
        torch.distributed.all_reduce(self.hits)  # <-- DDP401
        print("hits", self.hits)
