import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(3407)  # <- DDP205
    return DDP(nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)))


if __name__ == "__main__":
    main()
