"""A job that is told whose weights to begin with: what it saves is no state that it goes on from."""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weights", default="")
    options = parser.parse_args()
    dist.init_process_group("nccl")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    net = nn.Linear(8, 4).to(device)
    if options.weights:
        net.load_state_dict(torch.load(options.weights, map_location=device)["net"])
    model = DistributedDataParallel(net)
    learner = torch.optim.SGD(model.parameters(), lr=0.1)
    for turn in range(90):
        learner.zero_grad()
        model(torch.randn(64, 8, device=device)).mean().backward()
        learner.step()
        if dist.get_rank() == 0:
            torch.save({"net": net.state_dict(), "round": turn}, "tuned.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
