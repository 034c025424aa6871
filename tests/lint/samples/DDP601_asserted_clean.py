from collections import defaultdict

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Running:
    def __init__(self):
        self.whole, self.steps = 0.0, 0

    def push(self, value, times=1):
        self.steps += times
        self.whole += value * times


class Panel:
    def __init__(self):
        self.lines = defaultdict(Running)

    def note(self, **named):
        for key, value in named.items():
            if isinstance(value, torch.Tensor):
                value = value.item()
            assert isinstance(value, (float, int))
            self.lines[key].push(value)


def train(model, batches, optimizer):
    panel = Panel()
    for batch in batches:
        main_loss, side_loss = model(batch)
        loss = main_loss + side_loss * 0
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        panel.note(main=main_loss.item())
        panel.note(side=side_loss)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    net = DistributedDataParallel(torch.load("net.pt", map_location="cpu"))
    sgd = torch.optim.SGD(net.parameters(), 0.1)
    train(net, torch.load(f"batches{dist.get_rank()}.pt"), sgd)
    dist.destroy_process_group()
