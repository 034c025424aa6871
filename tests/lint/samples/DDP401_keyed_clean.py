import os

import torch.distributed as dist


class Agent:
    def __init__(self, params):
        self.config = config = params["config"]
        if config.get("multi_gpu"):
            config["device"] = int(os.environ["LOCAL_RANK"])
        self.reports = config["reports"]

    def report(self, losses):
        if self.reports:
            dist.all_reduce(losses)


def synchronise(config, statistics):
    config["device"] = int(os.environ["LOCAL_RANK"])
    if config["normalize"]:
        dist.all_reduce(statistics)
    if config.get("statistics"):
        dist.all_reduce(statistics)


def main(params, losses):
    dist.init_process_group("nccl")
    Agent(params).report(losses)
