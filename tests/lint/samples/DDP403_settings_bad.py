import os

import torch
import torch.distributed as dist


class Agent:
    def __init__(self, config):
        self.multi_gpu = config.get("multi_gpu", False)
        self.rank = 0
        self.world_size = 1
        if self.multi_gpu:
            self.rank = int(os.environ["RANK"])
            self.world_size = int(os.environ["WORLD_SIZE"])
            dist.init_process_group("nccl", rank=self.rank, world_size=self.world_size)
        self.max_epochs = config["max_epochs"]

    def share(self, flag):
        if self.multi_gpu:
            dist.broadcast(flag, self.rank)  # <-- DDP403
        return flag.item()


def main(config, flag):
    return Agent(config).share(flag)
