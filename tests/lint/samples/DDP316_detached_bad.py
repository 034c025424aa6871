import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


def everywhere(rows):
    """The rows of all ranks, this one's as they are."""
    pieces = [torch.empty_like(rows) for _ in range(dist.get_world_size())]
    dist.all_gather(pieces, rows.detach())  # <-- DDP316
    return torch.cat(pieces)


def matching(text, image):
    """Each text against the images of all, each image against the texts of all."""
    first = len(text) * dist.get_rank()
    targets = torch.arange(first, first + len(text))
    by_text = F.cross_entropy(text @ everywhere(image).T, targets)
    return by_text + F.cross_entropy(image @ everywhere(text).T, targets)


class Towers(nn.Module):
    def __init__(self):
        super().__init__()
        self.text, self.image = nn.Linear(20, 8), nn.Linear(30, 8)

    def forward(self, words, pixels):
        return self.text(words), self.image(pixels)


def main(pairs):
    dist.init_process_group("nccl")
    towers = DistributedDataParallel(Towers())
    optimizer = torch.optim.AdamW(towers.parameters())
    sampler = DistributedSampler(pairs)
    for epoch in range(5):
        sampler.set_epoch(epoch)
        for words, pixels in DataLoader(pairs, 32, sampler=sampler):
            optimizer.zero_grad()
            matching(*towers(words, pixels)).backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main([(torch.randn(20), torch.randn(30)) for _ in range(256)])
