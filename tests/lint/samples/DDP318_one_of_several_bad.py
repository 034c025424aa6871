"""One of several agents, which wraps its model or not, and takes the weights as if it had not."""

import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Policy(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.layer = torch.nn.Linear(size, size)

    def forward(self, x):
        return self.layer(x)

    def weights(self):
        return {name: each.cpu() for name, each in self.state_dict().items()}


class Agent:
    def __init__(self, ranks, workers):
        self.shared = True if ranks > 1 or workers > 1 else False

    def weights(self, model):
        return model.weights()  # <-- DDP318

    def train(self, steps):
        model = Policy(self.size)
        if self.shared:
            model = DistributedDataParallel(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(steps):
            optimizer.zero_grad()
            model(torch.randn(4, self.size)).square().mean().backward()
            optimizer.step()
        return self.weights(model)


class OfImages(Agent):
    def __init__(self, ranks, workers):
        super().__init__(ranks, workers)
        self.size = 64


class OfStates(Agent):
    def __init__(self, ranks, workers):
        super().__init__(ranks, workers)
        self.size = 8


AGENTS = {"images": OfImages, "states": OfStates}


def main(name, ranks, workers):
    dist.init_process_group("gloo")
    agent = AGENTS[name](ranks, workers)
    weights = agent.train(100)
    if dist.get_rank() == 0:
        torch.save(weights, "agent.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
