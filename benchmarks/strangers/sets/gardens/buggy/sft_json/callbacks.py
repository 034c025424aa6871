import torch.distributed as dist

from ckpt import CheckpointWriter


class Progress:
    def __init__(self, main):
        self.main = main

    def on_step(self, model, step, loss):
        if self.main and step % 6 == 0:
            print(f"step {step} loss on rank 0 {loss:.4f}", flush=True)


class Saver:
    def __init__(self, folder, every, main):
        self.every, self.main = every, main
        self.writer = CheckpointWriter(folder)

    def on_step(self, model, step, loss):
        if step % self.every:
            return
        if self.main:
            path = self.writer.write(model, step)
            print("saved", path.rsplit("/", 1)[-1], flush=True)
        dist.barrier()
