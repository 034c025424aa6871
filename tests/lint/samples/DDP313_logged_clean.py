import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Learner:
    def __init__(self, net, rate):
        self.net, self.rate = DistributedDataParallel(net), rate

    def update(self, loss):
        weights = list(self.net.parameters())
        slopes = torch.autograd.grad(loss, weights)
        flat = torch.cat([each.flatten() for each in slopes])
        dist.all_reduce(flat)
        flat /= dist.get_world_size()
        sizes = [each.numel() for each in weights]
        for weight, slope in zip(weights, flat.split(sizes)):
            weight.data.sub_(self.rate * slope.view_as(weight))

    def learn(self, batches):
        for x, y in batches:
            self.update((self.net(x) - y).square().mean())


def share(slopes):
    for slope in slopes:
        dist.all_reduce(slope)
        slope.div_(dist.get_world_size())


def learn(net, batches, optimizer):
    model = DistributedDataParallel(net)
    names, weights = zip(*model.named_parameters())
    for x, y in batches:
        slopes = torch.autograd.grad((model(x) - y).square().mean(), weights)
        share(slopes)
        for weight, slope in zip(weights, slopes):
            weight.grad = slope
        optimizer.step()


def learn_in_one(net, batches, optimizer):
    model = DistributedDataParallel(net)
    weights = [each for each in model.parameters() if each.requires_grad]
    all_slopes = torch.zeros(sum(each.numel() for each in weights))
    for x, y in batches:
        start = 0
        for slope in torch.autograd.grad((model(x) - y).square().mean(), weights):
            all_slopes[start : start + slope.numel()].copy_(slope.flatten())
            start += slope.numel()
        dist.all_reduce(all_slopes)
        torch.nn.utils.vector_to_parameters(all_slopes, weights)
        optimizer.step()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    Learner(torch.nn.Linear(2, 2), 0.1).learn([(torch.ones(2), torch.ones(2))])
