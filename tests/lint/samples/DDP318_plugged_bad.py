import sys

import torch
from accelerate import Accelerator


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(3, 1)

    def forward(self, x):
        return self.body(x)

    def guess(self, x):
        return self.body(x).sign()


def main(path):
    accelerator = Accelerator(project_dir=path)
    net = Net()
    net, optimizer = accelerator.prepare(net, torch.optim.SGD(net.parameters(), 0.1))
    for batch in torch.rand(10, 4, 3):
        accelerator.backward(net(batch.to(accelerator.device)).mean())
        optimizer.step()
        optimizer.zero_grad()
    print(net.guess(torch.rand(4, 3).to(accelerator.device)))  # <-- DDP318


if __name__ == "__main__":
    main(sys.argv[1])
