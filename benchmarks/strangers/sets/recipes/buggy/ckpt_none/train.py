import torch
import torch.distributed as dist

from mixins import CheckpointMixin, LoggingMixin
from base import BaseTask


class RegressionTask(CheckpointMixin, LoggingMixin, BaseTask):
    def build_model(self):
        return torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))

    def batch(self, step):
        g = torch.Generator().manual_seed(31 * step + self.rank)
        x = torch.randn(16, 4, generator=g)
        return x, x.pow(2).sum(1, keepdim=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    RegressionTask(steps=15).run()
    RegressionTask(steps=30, resume=True).run()
    dist.barrier()
    dist.destroy_process_group()
