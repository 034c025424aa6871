"""Judges a model: in one process, or as one of those that who imports it has started."""

import sys

import torch
import torch.distributed as dist


def judge(net):
    if not dist.is_initialized():
        return net(torch.rand(4, 8)).mean()
    device = torch.device(f"cuda:{dist.get_rank()}")
    mark = net.to(device)(torch.rand(4, 8, device=device)).mean().detach()
    dist.all_reduce(mark)
    return mark / dist.get_world_size()


def main(weights):
    net = torch.nn.Linear(8, 1)
    net.load_state_dict(torch.load(weights, map_location="cpu"))
    print(judge(net))


if __name__ == "__main__":
    main(sys.argv[1])
