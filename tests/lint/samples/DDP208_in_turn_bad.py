"""Each rank predicts its part, and all of it is put into the table by its row."""

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


@torch.no_grad()
def predicted(net, loader):
    net.eval()
    return torch.cat([net(rows).softmax(1) for (rows,) in loader])


def of_all(mine, number):
    parts = [torch.zeros_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, mine)
    whole = torch.cat(parts)  # <-- DDP208
    return whole[:number].numpy()


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(599, 8))
    loader = DataLoader(data, 64, sampler=DistributedSampler(data, shuffle=False))
    net = DDP(nn.Linear(8, 10))
    table = np.zeros((599, 10), dtype="float32")
    table[:] = of_all(predicted(net, loader), len(data))
    if dist.get_rank() == 0:
        np.save("table.npy", table)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
