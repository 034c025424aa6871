import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def learn(net, optimizer, loader):
    total = 0.0
    for rows, wanted in loader:
        optimizer.zero_grad()
        loss = (net(rows) - wanted).pow(2).mean()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    return total / len(loader.sampler)


def main():
    dist.init_process_group("gloo")
    world = dist.get_world_size()
    data = TensorDataset(torch.randn(64, 3), torch.randn(64, 1))
    sampler = DistributedSampler(data)
    net = DDP(torch.nn.Linear(3, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(4):
        sampler.set_epoch(epoch)
        mean = torch.tensor([learn(net, optimizer, DataLoader(data, 8, sampler=sampler))])
        dist.all_reduce(mean)
        mean /= world
        print(epoch, mean.item())


if __name__ == "__main__":
    main()
