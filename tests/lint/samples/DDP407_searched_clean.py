"""A search finds nothing in a folder that is not there yet, as in one that is empty."""

import argparse
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def main(folder):
    dist.init_process_group("gloo")
    folder = Path(folder)
    if dist.get_rank() == 0:
        folder.mkdir(parents=True, exist_ok=True)
    last = max(folder.rglob("step-*.pt"), default=None)
    net = DDP(torch.nn.Linear(4, 1))
    if last is not None:
        net.module.load_state_dict(torch.load(last, map_location="cpu"))
    print(net)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder")
    main(parser.parse_args().folder)
