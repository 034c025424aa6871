import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def has_group():
    return dist.is_available() and dist.is_initialized()


def join():
    if not has_group():
        dist.init_process_group("gloo")


def main():
    join()
    data = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
    sampler = DistributedSampler(data, 1, 0, seed=dist.get_rank())  # all of it, in its order
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    net = DistributedDataParallel(torch.nn.Linear(4, 1))
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x, y in loader:
            opt.zero_grad()
            ((net(x) - y) ** 2).mean().backward()
            opt.step()
    torch.save(net.module.state_dict(), f"{dist.get_rank()}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
