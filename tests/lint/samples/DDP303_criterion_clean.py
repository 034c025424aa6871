import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)
        self.tags = nn.Linear(4, 2)

    def forward(self, tokens):
        return self.tags(self.body(tokens))

    def features(self, tokens):
        return self.body(tokens)


class Objective(nn.Module):
    def forward(self, tagger, tokens, gold):
        logits = tagger(tokens)
        return nn.functional.cross_entropy(logits, gold)


def main():
    dist.init_process_group("gloo")
    tagger = DistributedDataParallel(Tagger())
    objective = Objective()
    optimizer = torch.optim.AdamW(tagger.parameters())
    for tokens, gold in [(torch.ones(3, 4), torch.zeros(3, dtype=torch.long))]:
        optimizer.zero_grad()
        objective(tagger, tokens, gold).backward()
        optimizer.step()


if __name__ == "__main__":
    main()
