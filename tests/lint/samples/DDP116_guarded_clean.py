import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def home():
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("cpu")


class Loop:
    def __init__(self, net):
        self.net = net
        if torch.cuda.is_available():
            self.outer = DistributedDataParallel(self.net, device_ids=[home()])
        else:
            self.outer = DistributedDataParallel(self.net)


def main():
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    net = torch.nn.Linear(2, 2)
    net.to(home())
    Loop(net).outer(torch.randn(2, 2, device=home())).mean().backward()
    dist.destroy_process_group()


main()
