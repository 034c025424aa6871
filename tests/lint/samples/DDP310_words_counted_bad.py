from collections import Counter

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Words:
    def __init__(self, texts, often=2):
        counts = Counter(word for each in texts for word in each.split())
        kept = sorted(word for word, count in counts.items() if count >= often)
        self.number = {word: at + 1 for at, word in enumerate(kept)}

    def __len__(self):
        return len(self.number) + 1


def main(path):
    dist.init_process_group("gloo")
    with open(path) as file:
        texts = file.read().splitlines()
    mine = texts[dist.get_rank() :: dist.get_world_size()]
    words = Words(mine)
    net = DistributedDataParallel(nn.EmbeddingBag(len(words), 16))  # <-- DDP310
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for each in mine[: len(texts) // dist.get_world_size()]:
        at = torch.tensor([[words.number.get(word, 0) for word in each.split()]])
        loss = net(at).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main("texts.txt")
