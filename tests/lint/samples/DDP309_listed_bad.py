"""As many words as a rank's sentences have, which are drawn one after another."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 3)

    def forward(self, words):
        return {"scores": self.net(words)}


def sentences(rank):
    draw = torch.Generator().manual_seed(rank)
    while True:
        batch = []
        for _ in range(4):
            length = int(torch.randint(2, 30, (1,), generator=draw))
            batch.append({"tags": torch.randint(0, 3, (length,), generator=draw)})
        yield batch


def objective(found, batch):
    words = sum(len(each["tags"]) for each in batch)
    tags = torch.cat([each["tags"] for each in batch])
    return nn.functional.cross_entropy(found["scores"], tags, reduction="sum") / words  # <- DDP309


dist.init_process_group("gloo")
model = DDP(Tagger())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in sentences(dist.get_rank()):
    length = sum(len(each["tags"]) for each in batch)
    optimizer.zero_grad()
    objective(model(torch.ones(length, 8)), batch).backward()
    optimizer.step()
