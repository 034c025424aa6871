import os

import torch
import torch.distributed as dist


class Hook:
    def on_epoch_end(self, tr, score):
        pass

    def on_fit_end(self, tr):
        pass


class Printer(Hook):
    def on_epoch_end(self, tr, score):
        if tr.is_main:
            print(f"epoch {tr.epoch} train {tr.last_loss:.5f} val-L1 {score:.5f}", flush=True)


class BestKeeper(Hook):
    """Remembers the best epoch and leaves its weights in the work folder."""

    def __init__(self, folder):
        self.folder = folder
        self.score = float("inf")
        self.path = None

    def on_epoch_end(self, tr, score):
        if score >= self.score:
            return
        old, self.score = self.path, score
        self.path = os.path.join(self.folder, f"best-{tr.epoch:03d}.pt")
        if tr.is_main:
            self._write(tr, self.path)
            if old:
                os.remove(old)

    def _write(self, tr, path):
        tmp = path + ".part"
        torch.save({"model": tr.net.module.state_dict(), "epoch": tr.epoch, "score": self.score}, tmp)
        os.replace(tmp, path)


class Rewind(Hook):
    """Back to the best weights, at a smaller lr, after some epochs without gain."""

    def __init__(self, keeper, patience):
        self.keeper, self.patience = keeper, patience
        self.stale = 0

    def on_epoch_end(self, tr, score):
        self.stale = 0 if score <= self.keeper.score else self.stale + 1
        if self.stale >= self.patience:
            tr.load(self.keeper.path)
            for g in tr.opt.param_groups:
                g["lr"] *= 0.5
            self.stale = 0

    def on_fit_end(self, tr):
        tr.load(self.keeper.path)
