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
                dist.all_reduce(weight.grad)  # <-- DDP421
        self.optimizer.step()


@torch.no_grad()
def clip(weights, most):
    slopes = [weight.grad for weight in weights if weight.grad is not None]
    squares = torch.stack([each.pow(2).sum() for each in slopes]).sum()
    dist.all_reduce(squares)  # <-- DDP421
    scale = (most / (squares.sqrt() + 1e-6)).clamp(max=1.0)
    for each in slopes:
        each.mul_(scale)


def pack(model):
    flat = torch.cat([weight.grad.data.flatten() for _, weight in model.named_parameters()])
    dist.all_reduce(flat)  # <-- DDP421
    torch.nn.utils.vector_to_parameters(flat, [weight.grad for weight in model.parameters()])


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
        pack(model)
        clip(weights, 1.0)
        optimizer.step()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    part = torch.ones(4, 5) * dist.get_rank()
    first([(part, part.sum())])
    second([(part, part.sum())])
