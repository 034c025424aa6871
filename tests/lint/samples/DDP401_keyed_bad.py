import os

import torch.distributed as dist


class Agent:
    def __init__(self, params):
        self.config = config = params["config"]
        if config.get("multi_gpu"):
            config["device"] = int(os.environ["LOCAL_RANK"])
        self.reports = config["device"] == 0

    def report(self, losses):
        if self.reports:
            dist.all_reduce(losses)  # <-- DDP401


def synchronise(config, statistics):
    config["device"] = int(os.environ["LOCAL_RANK"])
    if config.get("device") == 0:
        dist.all_reduce(statistics)  # <-- DDP401


def main(params, losses):
    dist.init_process_group("nccl")
    Agent(params).report(losses)
