import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler


class Peers:
    def __init__(self, net):
        self.net, self.number = net, dist.get_world_size()

    def average(self):
        for weight in self.net.parameters():
            if weight.grad is not None:
                dist.all_reduce(weight.grad / self.number)  # <-- DDP303

    def average_in_double(self):
        for weight in self.net.parameters():
            dist.all_reduce(weight.grad.double())  # <-- DDP303

    def average_in_order(self):
        for weight in self.net.parameters():
            dist.all_reduce(weight.grad.contiguous())  # <-- DDP303
            weight.grad /= self.number

    def average_at_once(self):
        weights = list(self.net.parameters())
        dist.all_reduce(torch.cat([each.grad.flatten() for each in weights]))  # <-- DDP303


def main(data):
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    net = nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    peers = Peers(net)
    for images in DataLoader(data, 8, sampler=DistributedSampler(data)):
        optimizer.zero_grad()
        net(images).square().mean().backward()
        peers.average()
        peers.average_in_double()
        peers.average_in_order()
        peers.average_at_once()
        optimizer.step()


main(torch.randn(64, 3, 8, 8))
