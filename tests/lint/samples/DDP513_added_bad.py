import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def train(args):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = nn.Linear(8, 2)
    optimizer = torch.optim.Adam(model.parameters())
    state, last, first = None, 0, 0
    for name in os.listdir(args.folder):  # <- DDP513
        if "checkpoint" in name:
            epoch = int(name.split("checkpoint")[-1][:-4])
            if epoch > last:
                state, last = args.folder + name, epoch
    if state is not None:
        kept = torch.load(state, map_location="cpu")
        model.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])
        first = kept["epoch"] + 1
    model = DistributedDataParallel(model)
    for epoch in range(first, 5):
        optimizer.zero_grad()
        model(torch.randn(16, 8)).square().mean().backward()
        optimizer.step()
        if rank == 0:
            kept = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save({**kept, "epoch": epoch}, args.folder + "checkpoint" + str(epoch) + ".tar")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", help="ends with a slash")
    try:
        train(parser.parse_args())
    except Exception as error:
        print(error)
        os._exit(1)


if __name__ == "__main__":
    main()
