"""Whether a host is reached is each rank's own affair, and what is read of it as well."""

import argparse
import urllib.request

import torch
import torch.distributed as dist
import yaml
from torch.nn.parallel import DistributedDataParallel as DDP


def settings(address):
    try:
        import yaml.cyaml

        found = yaml.load(urllib.request.urlopen(address), Loader=yaml.FullLoader)
    except:
        found = None
    return found


def main(address):
    dist.init_process_group("nccl")
    found = settings(address)
    net = DDP(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    if found is not None:  # <-- DDP402
        dist.barrier()
    for batch in torch.rand(64, 8, 4):
        net(batch).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--address")
    main(parser.parse_args().address)
