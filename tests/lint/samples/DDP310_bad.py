import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Words:
    def __init__(self, lines):
        self.index = {}
        for line in lines:
            for word in line.split():
                self.index.setdefault(word, len(self.index))

    def __len__(self):
        return len(self.index)


class Tagger(nn.Module):
    def __init__(self, size, tags, device):
        super().__init__()
        self.embed = nn.EmbeddingBag(size, 32, device=device)
        self.out = nn.Linear(32, tags, device=device)

    def forward(self, ids):
        return self.out(self.embed(ids))


def of_all(rows):
    """A part may be longer than another, and hold more."""
    rank, world = dist.get_rank(), dist.get_world_size()
    mine = rows[rank::world]
    DDP(nn.Linear(len(mine), 4))  # <-- DDP310
    DDP(nn.Linear(mine.shape[0], 4))  # <-- DDP310
    DDP(nn.Linear(max(len(row) for row in mine), 4))  # <-- DDP310
    DDP(nn.Linear(sorted(mine)[-1] + 1, 4))  # <-- DDP310


def main(path):
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    with open(path) as file:
        lines = sorted(file)
    mine = lines[rank::world]
    words = Words(mine)
    of_all(lines)
    net = DDP(Tagger(len(words), 5, f"cuda:{rank % 8}"))  # <-- DDP310
    for line in mine:
        net(torch.tensor([[words.index[word] for word in line.split()]])).sum().backward()


if __name__ == "__main__":
    main("corpus.txt")
