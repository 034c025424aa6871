import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(4, 4)
        self.bins = torch.nn.Conv1d(4, 1, 1, bias=False).requires_grad_(False)

    def forward(self, x):
        return self.bins(self.body(x).unsqueeze(-1)).mean()


def main():
    dist.init_process_group("gloo")
    net = Net()
    wrapped = DistributedDataParallel(net, find_unused_parameters=True)
    for each in net.body.parameters():
        each.requires_grad = False
    for epoch in range(4):
        if epoch == 2:
            for each in net.body.parameters():
                each.requires_grad = True
        wrapped(torch.ones(2, 4)).backward()


main()
