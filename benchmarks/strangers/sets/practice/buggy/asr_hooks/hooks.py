import os

import torch
import torch.distributed as dist


class Hook:
    def after_step(self, trainer, loss):
        pass

    def after_epoch(self, trainer):
        pass


class LogHook(Hook):
    def __init__(self):
        self.buf = []

    def after_step(self, trainer, loss):
        self.buf.append(loss)

    def after_epoch(self, trainer):
        if dist.get_rank() == 0:
            print(f"epoch {trainer.epoch} ctc {sum(self.buf) / len(self.buf):.3f}", flush=True)
        self.buf.clear()


class CheckpointHook(Hook):
    def __init__(self, out_dir, interval):
        self.out_dir = out_dir
        self.interval = interval

    def after_epoch(self, trainer):
        if trainer.epoch % self.interval or dist.get_rank() != 0:
            return
        payload = {
            "epoch": trainer.epoch,
            "weights": trainer.model.state_dict(),
            "optim": trainer.opt.state_dict(),
        }
        torch.save(payload, os.path.join(self.out_dir, f"epoch_{trainer.epoch}.pt"))
