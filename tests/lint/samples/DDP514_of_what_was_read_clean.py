import argparse
import os

import torch
import torch.distributed as dist
import yaml
from torch.nn.parallel import DistributedDataParallel


class Keeper:
    def __init__(self, folder="out"):
        self.folder = folder
        if not os.path.exists(folder):
            os.makedirs(folder)


def main(path, out):
    with open(path) as file:
        settings = yaml.safe_load(file)
    dist.init_process_group("nccl")
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    keeper = Keeper(os.path.dirname(path))
    model = DistributedDataParallel(torch.nn.Linear(4, 1).cuda(), device_ids=[local])
    optimizer = torch.optim.SGD(model.parameters(), settings["lr"])
    for _ in range(10):
        optimizer.zero_grad()
        model(torch.randn(8, 4).cuda()).mean().backward()
        optimizer.step()
    print("kept in", keeper.folder)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("settings")
    parser.add_argument("out")
    given = parser.parse_args()
    main(given.settings, given.out)
