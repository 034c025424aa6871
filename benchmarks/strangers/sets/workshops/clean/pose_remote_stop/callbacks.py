import os
import pathlib

import torch
import torch.distributed as dist


class Callback:
    def on_fit_start(self, trainer): ...
    def on_batch_end(self, trainer, loss): ...
    def on_fit_end(self, trainer): ...


class History(Callback):
    def __init__(self):
        self.losses = []

    def on_batch_end(self, trainer, loss):
        self.losses.append(float(loss))

    def on_fit_end(self, trainer):
        self.mean = sum(self.losses) / max(len(self.losses), 1)


class LossPrinter(Callback):
    def __init__(self, every):
        self.every = every

    def on_batch_end(self, trainer, loss):
        if trainer.global_step % self.every == 0:
            print(f"step {trainer.global_step} loss {loss.item():.4f}", flush=True)


class ControlFile(Callback):
    """The GUI talks to the process that shows the curves."""

    def __init__(self, folder, demo_step):
        self.path = pathlib.Path(folder) / f"stop-{os.environ.get('MASTER_PORT', 0)}"
        self.demo_step = demo_step
        self.main = dist.get_rank() == 0

    def on_fit_start(self, trainer):
        if self.main:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.unlink(missing_ok=True)
        dist.barrier()

    def on_batch_end(self, trainer, loss):
        if self.main:
            if trainer.global_step == self.demo_step:
                self.path.touch()
            if self.path.exists():
                trainer.should_stop = True
        flag = torch.tensor([int(trainer.should_stop)])
        dist.broadcast(flag, src=0)
        trainer.should_stop = bool(flag.item())

    def on_fit_end(self, trainer):
        if self.main:
            self.path.unlink(missing_ok=True)
        dist.barrier()
