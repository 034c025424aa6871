import argparse

import torch
from accelerate import Accelerator
from torch import nn


class Causal(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)

    def forward(self, x):
        return self.body(x)


class Paired(Causal):
    def forward(self, x):
        return self.body(x) + x


class Tuner:
    def __init__(self, args):
        self.accelerator = Accelerator()
        net = Paired() if args.paired else Causal()
        rate = torch.optim.Adam(net.parameters())
        self.net, self.rate = self.accelerator.prepare(net, rate)

    def learn(self, batches):
        for x in batches:
            loss = self.net(x).pow(2).mean()
            self.accelerator.backward(loss)
            self.rate.step()
            self.rate.zero_grad()
        print(self.accelerator.unwrap_model(self.net).body.weight.norm())


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--paired", action="store_true")
    Tuner(options.parse_args()).learn(torch.randn(100, 4, 8).cuda())
