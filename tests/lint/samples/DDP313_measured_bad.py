import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Monitor:
    def __init__(self):
        self.history = []

    def note(self, slopes):
        total = torch.stack([each.norm() for each in slopes]).norm()
        self.history.append(total.item())
        return total


def learn(net, batches, rate):
    model, monitor = DistributedDataParallel(net), Monitor()
    weights = [each for each in model.parameters() if each.requires_grad]
    for x, y in batches:
        loss = (model(x) - y).square().mean()
        slopes = torch.autograd.grad(loss, weights)  # <-- DDP313
        long = monitor.note(slopes)
        for weight, slope in zip(weights, slopes):
            weight.data.sub_(rate * slope / long)
    print(monitor.history)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    learn(torch.nn.Linear(2, 2), [(torch.ones(2), torch.ones(2))], 0.1)
