import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


class Remembering(nn.Module):
    def __init__(self, width=16, slots=512):
        super().__init__()
        self.encoder = nn.Linear(40, width)
        self.register_buffer("memory", torch.zeros(slots, width))
        self.register_buffer("next", torch.zeros(1, dtype=torch.long))

    def forward(self, x):
        return self.encoder(x)

    @torch.no_grad()
    def remember(self, codes):
        start = int(self.next)
        where = torch.arange(start, start + len(codes)) % len(self.memory)
        self.memory[where] = codes  # <-- DDP321
        self.next[0] = (start + len(codes)) % len(self.memory)


def everybodys(codes):
    parts = [torch.empty_like(codes) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, codes)
    return torch.cat(parts)


def main(samples):
    dist.init_process_group("nccl")
    model = DistributedDataParallel(Remembering())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sampler = DistributedSampler(samples, drop_last=True)
    for epoch in range(10):
        sampler.set_epoch(epoch)
        for x in DataLoader(samples, 64, sampler=sampler, drop_last=True):
            codes = model(x)
            optimizer.zero_grad()
            codes.square().mean().backward()
            optimizer.step()
            model.module.remember(codes.detach())
    dist.destroy_process_group()


if __name__ == "__main__":
    main([torch.randn(40) for _ in range(2048)])
