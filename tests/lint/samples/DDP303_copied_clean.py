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
                dist.all_reduce(weight.grad)
                weight.grad /= self.number

    def average_in_double(self):
        for weight in self.net.parameters():
            double = weight.grad.double()
            dist.all_reduce(double)
            weight.grad.copy_(double / self.number)

    def average_in_order(self):
        for weight in self.net.parameters():
            weight.grad = weight.grad.contiguous()
            dist.all_reduce(weight.grad)
            weight.grad /= self.number

    def average_at_once(self):
        grads = [each.grad for each in self.net.parameters()]
        flat = torch.cat([each.flatten() for each in grads])
        dist.all_reduce(flat)
        nn.utils.vector_to_parameters(flat / self.number, grads)


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
