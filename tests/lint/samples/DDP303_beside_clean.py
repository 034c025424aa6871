"""A wrapped head that is trained with the wrapped encoder, by an optimizer of its own."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Head(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.out = nn.Linear(width, 2)

    def forward(self, x):
        return self.out(x)


def train(data):
    encoder = DDP(nn.Sequential(nn.Linear(8, 16), nn.ReLU()))
    head = DDP(Head(16))
    encoder_step = torch.optim.SGD(encoder.parameters(), lr=0.1)
    head_step = torch.optim.SGD(head.parameters(), lr=0.1)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=16, sampler=sampler)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x, y in loader:
            encoder_step.zero_grad()
            head_step.zero_grad()
            nn.functional.cross_entropy(head(encoder(x)), y).backward()
            encoder_step.step()
            head_step.step()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    train(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))))
    dist.destroy_process_group()
