import torch
from shelf import NETS


@NETS.put()
class Small(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = torch.nn.Linear(width, 1)

    def forward(self, seen):
        return self.body(seen)

    def shrink(self):
        for weight in self.parameters():
            weight.data.mul_(0.5)
