"""A model that is prepared in one of two ways is unwrapped whichever it was."""

import sys

import torch
from accelerate import Accelerator


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def forward(self, x):
        return self.layer(x)

    def keep(self, path):
        torch.save(self.layer.state_dict(), path)


def main(kind):
    accelerator = Accelerator()
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = torch.utils.data.DataLoader(torch.rand(64, 4))
    if kind == "whole":
        model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    else:
        model, optimizer = accelerator.prepare(model, optimizer)
    for x in loader:
        optimizer.zero_grad()
        accelerator.backward(model(x).square().mean())
        optimizer.step()
    if accelerator.is_main_process:
        bare = accelerator.unwrap_model(model)
        bare.keep("last.pt.part")


if __name__ == "__main__":
    main(sys.argv[1])
