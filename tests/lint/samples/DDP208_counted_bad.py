import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def judge(net, samples):
    loader = DataLoader(samples, sampler=DistributedSampler(samples), batch_size=4)  # <-- DDP208
    total = torch.zeros(())
    with torch.no_grad():
        for number, (batch,) in enumerate(loader):
            total += net(batch).abs().mean()
    dist.all_reduce(total)
    return total / dist.get_world_size() / (number + 1)


def main():
    dist.init_process_group("gloo")
    net = DistributedDataParallel(nn.Linear(3, 1))
    learner = torch.optim.SGD(net.parameters(), lr=0.1)
    given, kept = TensorDataset(torch.randn(99, 3)), TensorDataset(torch.randn(50, 3))
    dealt = DistributedSampler(given)
    loader = DataLoader(given, sampler=dealt, batch_size=4, drop_last=True)
    for epoch in range(5):
        dealt.set_epoch(epoch)
        for (batch,) in loader:
            learner.zero_grad()
            net(batch).mean().backward()
            learner.step()
        print(judge(net, kept))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
