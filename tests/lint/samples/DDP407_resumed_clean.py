import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def newest(folder):
    found = [name for name in os.listdir(folder) if name.endswith(".pt")]
    found = sorted(found, key=lambda name: int(name.split(".")[0]))
    return os.path.join(folder, found[-1])


def main(options):
    dist.init_process_group("gloo")
    if dist.get_rank() == 0 and not os.path.isdir(options.folder):
        os.makedirs(options.folder)
    net = torch.nn.Linear(4, 1)
    if options.resume:
        net.load_state_dict(torch.load(newest(options.folder)))
    model = DDP(net)
    model(torch.randn(2, 4)).sum().backward()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", default="runs")
    parser.add_argument("--resume", action="store_true")
    main(parser.parse_args())
