"""What ends an epoch sums the hits of all, and tells them where its trainer is the first."""

import lightning.pytorch as pl
import torch
from torch import nn


class Tagger(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 2)
        self.hits = torch.zeros(1)

    def on_validation_epoch_end(self):
        torch.distributed.all_reduce(self.hits)
        if not self.trainer.is_global_zero:
            return
        print("hits", self.hits)
