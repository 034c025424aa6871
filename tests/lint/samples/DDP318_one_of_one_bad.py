"""Who has wrapped asks the wrapper for what the module has."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)

    def learning(self):
        return [each for each in self.body.parameters() if each.requires_grad]

    def forward(self, x):
        return self.body(x)


def main():
    if torch.cuda.device_count() > 1:
        dist.init_process_group("nccl", init_method="env://")
        torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
        ranks = dist.get_world_size()
    else:
        ranks = 1
    net = Net().cuda()
    if torch.cuda.device_count() > 1:
        net = DistributedDataParallel(net)
    for batch in torch.rand(10, 4, 8):
        learning = net.learning()  # <-- DDP318
        net(batch.cuda()).mean().backward()
        print(len(learning))


if __name__ == "__main__":
    main()
