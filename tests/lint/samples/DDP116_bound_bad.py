import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


TALKS_BY = {"cuda": "nccl", "cpu": "gloo"}


class Trainer:
    def __init__(self, gpu):
        self.device = (
            torch.device("cuda", gpu) if torch.cuda.is_available() else torch.device("cpu")
        )

    def join(self, ranks):
        if self.device.type == "cuda":
            torch.cuda.set_device(self.device)
        dist.init_process_group(TALKS_BY[self.device.type])

    def wrap(self, net, ranks):
        self.join(ranks)
        if self.device.type not in TALKS_BY:
            raise ValueError(f"no backend for {self.device}")
        net = net.to(self.device)
        return DistributedDataParallel(net, device_ids=[self.device])  # <-- DDP116


def main(gpu, ranks):
    return Trainer(gpu).wrap(nn.Linear(8, 2), ranks)
