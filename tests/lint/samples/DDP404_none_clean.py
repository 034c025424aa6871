import torch
import torch.distributed as dist
from torch.utils.tensorboard import SummaryWriter


class Progress:
    def __init__(self, folder):
        self.first = dist.get_rank() == 0
        self.writer = SummaryWriter(folder) if self.first else None
        self.step = 0

    def scalar(self, name, value):
        if self.writer is not None:
            self.writer.add_scalar(name, value, self.step)

    def rate(self, value):
        if self.first and value:
            self.writer.add_scalar("rate", value, self.step)


def main():
    dist.init_process_group("gloo")
    progress = Progress("runs")
    for _ in range(3):
        progress.scalar("loss", 1.0)
        progress.rate(0.1)
        dist.barrier()


if __name__ == "__main__":
    main()
