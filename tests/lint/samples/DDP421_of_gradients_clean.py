import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Optimization:
    def __init__(self, module, rate):
        self.module, self.optimizer = module, torch.optim.SGD(module.parameters(), lr=rate)

    def apply(self, loss):
        self.optimizer.zero_grad()
        loss.backward()
        for weight in self.module.parameters():
            if weight.grad is not None:
                dist.all_reduce(weight.grad)
                weight.grad /= dist.get_world_size()
        self.optimizer.step()


@torch.no_grad()
def clip(weights, most):
    slopes = [weight.grad for weight in weights if weight.grad is not None]
    squares = torch.stack([each.pow(2).sum() for each in slopes]).sum()
    dist.all_reduce(squares)
    long = (squares / dist.get_world_size()).sqrt()
    scale = (most / (long + 1e-6)).clamp(max=1.0)
    for each in slopes:
        each.mul_(scale)


def is_broken(weights):
    flags = torch.stack([torch.isnan(weight.grad).any() for weight in weights]).sum().float()
    dist.all_reduce(flags)
    return flags.item() > 0


def tell(weights):
    long = sum(weight.grad.pow(2).sum() for weight in weights).sqrt()
    shown = long.detach() / dist.get_world_size()
    dist.all_reduce(shown)
    print(shown.item())


def average(weights):
    share = 1.0 / dist.get_world_size()
    for weight in weights:
        dist.all_reduce(weight.grad)
        weight.grad.mul_(share)
    flat = torch.cat([weight.grad.flatten() for weight in weights])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    torch.nn.utils.vector_to_parameters(flat, [weight.grad for weight in weights])


def first(batches):
    model = DistributedDataParallel(torch.nn.Linear(5, 1))
    optimization = Optimization(model, 0.1)
    for x, y in batches:
        optimization.apply((model(x) - y).square().mean())


def second(batches):
    model = DistributedDataParallel(torch.nn.Linear(5, 1))
    weights = list(model.parameters())
    optimizer = torch.optim.SGD(weights, lr=0.1)
    for x, y in batches:
        loss = (model(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        if is_broken(weights):
            continue
        average(weights)
        clip(weights, 1.0)
        tell(weights)
        optimizer.step()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    part = torch.ones(4, 5) * dist.get_rank()
    first([(part, part.sum())])
    second([(part, part.sum())])
