"""What ends an epoch keeps the model where its trainer is the first, and all wait there."""

import torch
from pytorch_lightning.core import LightningModule
from torch import nn


class Denoiser(LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 8)

    def training_step(self, batch, batch_idx):
        noise = torch.randn_like(batch)
        return (self.net(batch + noise) - noise).square().mean()

    def on_train_epoch_end(self):
        if self.trainer.is_global_zero:
            self.trainer.save_checkpoint("last.ckpt")  # <-- DDP401
