import os

import torch
import torch.distributed as dist


class Critic:
    def __init__(self, config):
        self.rank = int(os.environ["RANK"])
        config["device"] = f"cuda:{self.rank}"
        config["frozen"] = self.rank > 0
        self.config = config
        self.net = torch.nn.Linear(4, 1)

    def train(self, batches):
        for epoch in range(self.config["epochs"]):
            if self.config.get("frozen", False):
                break
            for batch in batches:
                self.net(batch).sum().backward()
                for each in self.net.parameters():
                    dist.all_reduce(each.grad)  # <-- DDP401


def main(config, batches):
    dist.init_process_group("gloo")
    Critic(config).train(batches)
