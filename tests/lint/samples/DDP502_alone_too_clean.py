import argparse
import os

import torch
import torch.distributed as dist

options = argparse.ArgumentParser()
options.add_argument("--several", action="store_true")
given = options.parse_args()
writes = not given.several or int(os.environ["RANK"]) == 0


def train():
    net = torch.nn.Linear(6, 6)
    if given.several:
        dist.init_process_group("gloo")
        net = torch.nn.parallel.DistributedDataParallel(net)
    adam = torch.optim.Adam(net.parameters())
    for _ in range(100):
        adam.zero_grad()
        net(torch.rand(4, 6)).mean().backward()
        adam.step()
    if writes:
        whole = net.module if given.several else net
        torch.save(whole.state_dict(), "last.pt")


if __name__ == "__main__":
    train()
