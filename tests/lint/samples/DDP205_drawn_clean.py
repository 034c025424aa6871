import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


def main(data):
    dist.init_process_group("gloo")
    torch.manual_seed(3407)
    model = DDP(nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)))
    start = torch.randn(4)
    torch.manual_seed(3408 + dist.get_rank())
    loader = DataLoader(data, sampler=DistributedSampler(data, shuffle=False))
    for batch in loader:
        noisy = batch + start + torch.randn_like(batch)
        (model(noisy) - batch).pow(2).mean().backward()


if __name__ == "__main__":
    main([torch.ones(4)] * 8)
