"""What the training and the drawing of samples share: the model, and how a group is joined."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Experiment:
    def __init__(self, options):
        self.options = options
        self.model = torch.nn.Linear(2, 2)
        self.rank = 0
        if options.several:
            dist.init_process_group("gloo")
            self.rank = dist.get_rank()
            if self.rank != 0:
                options.verbose = False

    def train(self):
        model = DistributedDataParallel(self.model) if self.options.several else self.model
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(self.options.count):
            optimizer.zero_grad()
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
        if self.rank == 0:
            torch.save(self.model.state_dict(), self.options.weights)
