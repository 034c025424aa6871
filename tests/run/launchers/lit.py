"""python lit.py WHAT: the same training, by Lightning, which starts the second rank itself."""

import os
import sys
import time
from pathlib import Path

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 1)

    def training_step(self, batch, number):
        (x,) = batch
        if number == 2 and sys.argv[1] == "hang" and self.global_rank == 0:
            torch.distributed.barrier()  # the barrier
        if number == 2 and sys.argv[1] == "crash" and self.global_rank == 1:
            raise ValueError("a bad sample")  # the crash
        if number == 2 and sys.argv[1] == "long":
            Path(f"trains-{self.global_rank}").touch()
            while True:
                time.sleep(0.05)
        if sys.argv[1] == "idle":  # in short steps: Lightning acts upon a signal between two
            self.idle()
        return self.net(x).pow(2).mean()

    def idle(self):
        Path(f"idles-{self.global_rank}").touch()
        time.sleep(0.05)
        if self.trainer.strategy.reduce_boolean_decision(Path("enough").exists()):
            self.trainer.should_stop = True
            Path(f"ended-{self.global_rank}").touch()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def main():
    torch.manual_seed(0)  # the same samples on both ranks
    batches = DataLoader(TensorDataset(torch.randn(32, 4)), batch_size=4)
    trainer = lightning.Trainer(
        max_epochs=-1 if sys.argv[1] == "idle" else 1,
        accelerator="cpu",
        devices=2,
        strategy="ddp",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    model = Model()
    trainer.fit(model, batches)
    os.write(1, f"rank {model.global_rank} trained\n".encode())


if __name__ == "__main__":
    main()
