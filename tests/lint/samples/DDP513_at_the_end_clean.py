import copy

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def main():
    dist.init_process_group("gloo")
    model = DDP(torch.nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    best = copy.deepcopy(model.module.state_dict())
    for _ in range(20):
        model(torch.randn(4, 8)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    if dist.get_rank() == 0:
        model.module.load_state_dict(best)
        print(model.module(torch.randn(4, 8)).sum())
    dist.barrier()


main()
