import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Learner:
    def __init__(self, net, rate):
        self.net, self.rate = DistributedDataParallel(net), rate

    def update(self, loss):
        weights = list(self.net.parameters())
        slopes = torch.autograd.grad(loss, weights)  # <-- DDP313
        for weight, slope in zip(weights, slopes):
            weight.data.sub_(self.rate * slope)

    def tell(self, loss):
        mean = loss.detach() / dist.get_world_size()
        dist.all_reduce(mean)
        print(mean.item())

    def learn(self, batches):
        for x, y in batches:
            loss = (self.net(x) - y).square().mean()
            self.update(loss)
            self.tell(loss)


def learn(net, batches, optimizer):
    model = DistributedDataParallel(net)
    names, weights = zip(*model.named_parameters())
    for x, y in batches:
        loss = (model(x) - y).square().sum()
        slopes = dict(zip(names, torch.autograd.grad(loss, weights)))  # <-- DDP313
        count = torch.tensor([len(x)])
        dist.all_reduce(count)
        for name, weight in zip(names, weights):
            weight.grad = slopes[name] / count
        optimizer.step()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    Learner(torch.nn.Linear(2, 2), 0.1).learn([(torch.ones(2), torch.ones(2))])
