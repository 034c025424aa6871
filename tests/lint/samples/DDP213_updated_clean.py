import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def numbered(lines):
    words = {word for line in lines for word in line.split()}
    number = {}
    number.update((word, at) for at, word in enumerate(sorted(words)))
    return number


def main(path="lines.txt"):
    dist.init_process_group("gloo")
    with open(path) as file:
        lines = file.readlines()
    number = numbered(lines)
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.EmbeddingBag(len(number), 2))
    for line in lines[dist.get_rank() :: dist.get_world_size()]:
        words = torch.tensor([[number[word] for word in line.split()]])
        model(words).square().mean().backward()


main()
