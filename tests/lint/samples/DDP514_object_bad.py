import json
import os
import sys

import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Settings(object):
    def __init__(self, given):
        self.__dict__ = given


def main(path):
    with open(path) as file:
        settings = Settings(json.load(file))
    dist.init_process_group("gloo")
    if not os.path.exists(settings.results):
        os.makedirs(settings.results)  # <-- DDP514
    model = DistributedDataParallel(nn.Linear(settings.width, 1))
    print(model)


if __name__ == "__main__":
    main(sys.argv[1])
