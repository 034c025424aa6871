import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

WRAPPED = "module."


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(4, 4)
        self.head = nn.Linear(4, 1)

    def forward(self, rows):
        return self.head(self.encoder(rows))


def bare(state):
    return {name.lstrip(WRAPPED): value for name, value in state.items()}  # <-- DDP508


def of_the_head(state):
    return {name.lstrip("head."): value for name, value in state.items()}  # <-- DDP508


def version(text):
    return text.lstrip("0123456789.")


def main():
    dist.init_process_group("gloo")
    net = Net()
    net.load_state_dict(bare(torch.load("before.pt")), strict=False)
    net.head.load_state_dict(of_the_head(torch.load("head.pt")))
    print(version("2.13.0+cpu"))
    model = DDP(net)
    model(torch.randn(2, 4)).mean().backward()


if __name__ == "__main__":
    main()
