import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def work(here, options):
    if options.spread:
        options.place = int(os.environ["LOCAL_RANK"])
        dist.init_process_group(
            "gloo", init_method=options.at, rank=options.place, world_size=options.nodes * here
        )
    net = nn.Linear(3, 1)
    if options.spread:
        net = DistributedDataParallel(net)
    learner = torch.optim.SGD(net.parameters(), lr=0.1)
    for turn in range(20):
        learner.zero_grad()
        net(torch.randn(4, 3)).mean().backward()
        learner.step()
        if turn % options.every == 0:
            if (not options.started and options.place == 0) or (
                options.started and options.place % here == 0
            ):
                torch.save(net.state_dict(), os.path.join(options.folder, f"net-{turn}.pt"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--spread", action="store_true")
    parser.add_argument("--started", action="store_true")
    parser.add_argument("--at", default="tcp://localhost:29517")
    parser.add_argument("--place", type=int, default=0)
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--every", type=int, default=5)
    parser.add_argument("--folder", default=".")
    options = parser.parse_args()
    here = torch.cuda.device_count()
    work(here, options)


if __name__ == "__main__":
    main()
