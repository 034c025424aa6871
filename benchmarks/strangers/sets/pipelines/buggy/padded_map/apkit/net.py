import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def train_quickly(steps=30):
    net = DistributedDataParallel(torch.nn.Linear(4, 1))
    opt = torch.optim.Adam(net.parameters(), lr=0.05)
    g = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(steps):
        x = torch.randn(16, 4, generator=g)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(net(x).squeeze(1), (x[:, 0] > 0).float())
        opt.zero_grad()
        loss.backward()
        opt.step()
    return net
