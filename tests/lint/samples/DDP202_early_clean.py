import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Info:
    def __init__(self):
        there = dist.is_initialized()
        self.number = dist.get_rank() if there else 0
        self.count = dist.get_world_size() if there else 1


def train(loader, sampler, info):
    net = DistributedDataParallel(torch.nn.Linear(4, 1))
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x, y in loader:
            opt.zero_grad()
            ((net(x) - y) ** 2).mean().backward()
            opt.step()
    if info.number == 0:
        torch.save(net.module.state_dict(), "last.pt")


if __name__ == "__main__":
    dist.init_process_group("gloo")
    info = Info()
    data = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
    sampler = DistributedSampler(data, info.count, info.number)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    train(loader, sampler, info)
    dist.destroy_process_group()
