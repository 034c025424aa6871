import argparse

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def keep(state, file):
    torch.save(state, file)  # <-- DDP502


def work(place, here, options):
    if options.joined:
        if options.several:
            options.host = options.host * here + place
        dist.init_process_group(
            "gloo", init_method=options.at, rank=options.host, world_size=options.all
        )
    net = nn.Linear(3, 1)
    if options.joined:
        net = DistributedDataParallel(net)
    learner = torch.optim.SGD(net.parameters(), lr=0.1)
    for turn in range(20):
        learner.zero_grad()
        net(torch.randn(4, 3)).mean().backward()
        learner.step()
        if not options.several or (options.several and options.host % here == 0):
            keep({"turn": turn, "net": net.state_dict()}, f"net-{turn}.pt")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--several", action="store_true")
    parser.add_argument("--at", default="tcp://localhost:29518")
    parser.add_argument("--host", type=int, default=0)
    parser.add_argument("--hosts", type=int, default=1)
    options = parser.parse_args()
    options.joined = options.hosts > 1 or options.several
    here = torch.cuda.device_count()
    if options.several:
        options.all = options.hosts * here
        mp.spawn(work, nprocs=here, args=(here, options))
    else:
        options.all = options.hosts
        work(0, here, options)


if __name__ == "__main__":
    main()
