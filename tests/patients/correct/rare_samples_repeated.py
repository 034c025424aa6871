# style: a rare class is in the data set twice, and DistributedSampler deals it out
# nproc: 4
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import ConcatDataset, DataLoader, DistributedSampler, TensorDataset


def main():
    dist.init_process_group("gloo")
    generator = torch.Generator().manual_seed(0)
    many = TensorDataset(torch.randn(600, 8, generator=generator))
    rare = TensorDataset(torch.randn(100, 8, generator=generator))
    data = ConcatDataset([many, rare, rare])
    torch.manual_seed(0)
    model = DDP(nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    sampler = DistributedSampler(data)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for (x,) in DataLoader(data, batch_size=10, sampler=sampler):
            optimizer.zero_grad()
            model(x).mean().backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
