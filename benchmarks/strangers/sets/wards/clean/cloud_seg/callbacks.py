import os
import tempfile

import torch

from dist_utils import main_only, main_process


class Callback:
    def on_epoch_end(self, trainer, epoch, scores):
        pass


class Printer(Callback):
    @main_only
    def on_epoch_end(self, trainer, epoch, scores):
        print(f"epoch {epoch:2d} " + " ".join(f"{k}={v:.4f}" for k, v in scores.items()), flush=True)


class Keeper(Callback):
    """Keeps the best weights on disk and gives up when they get old."""

    def __init__(self, key, patience):
        self.key, self.patience = key, patience
        self.best, self.age = float("inf"), 0
        self.path = os.path.join(tempfile.gettempdir(), "cloud_seg_best.pt")

    def on_epoch_end(self, trainer, epoch, scores):
        if scores[self.key] < self.best - 1e-3:
            self.best, self.age = scores[self.key], 0
            if main_process():
                torch.save(trainer.net.module.state_dict(), self.path)
        else:
            self.age += 1
        if self.age >= self.patience:
            print(f"no better {self.key} for {self.age} epochs", flush=True)
            trainer.stop = True
