import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def statistics(given, model):
    if isinstance(given, str):
        assert given.endswith(".npz")
        return np.load(given)["mean"]
    return model(given(torch.rand(2, 2)))


def main(args, model):
    dist.init_process_group("nccl")
    if args.small:
        net = DDP(torch.nn.Linear(2, 2), bucket_cap_mb=5)
    else:
        net = DDP(torch.nn.Linear(2, 2))
    net(torch.rand(2, 2)).sum().backward()
    print(statistics(net, model), statistics("all.npz", model))
