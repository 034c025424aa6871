import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def main():
    distributed = dist.is_initialized()  # <-- DDP115
    net = nn.Linear(2, 2)
    return DDP(net) if distributed else net


if __name__ == "__main__":
    main()
