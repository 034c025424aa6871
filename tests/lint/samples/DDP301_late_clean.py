import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Judge(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.body, self.head = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.body(self.words(x)))


def learn(batches, optimizer, epochs):
    dist.init_process_group("nccl")
    judge = Judge()
    judge.words.requires_grad_(False)
    net = DistributedDataParallel(judge)
    for epoch in range(epochs):
        judge.words.requires_grad_(False)
        if epoch == 3:
            judge.body.requires_grad_(False)
            net = DistributedDataParallel(judge)
        for batch in batches:
            optimizer.zero_grad()
            net(batch).sum().backward()
            optimizer.step()


def learn_in_turn(batches, makers, steps, epochs):
    dist.init_process_group("nccl")
    maker, judge = (DistributedDataParallel(each) for each in makers)
    for _ in range(epochs):
        for batch in batches:
            judge.requires_grad_(True)
            judge(maker(batch).detach()).sum().backward()
            steps["judge"].step()
            judge.requires_grad_(False)
            judge(maker(batch)).sum().backward()
            steps["maker"].step()


def search(batches, optimizer, epochs):
    dist.init_process_group("nccl")
    net = DistributedDataParallel(Judge(), find_unused_parameters=True)
    for epoch in range(epochs):
        net.module.body.requires_grad_(epoch < 3)
        if epoch == 5:
            net.module.head.requires_grad_(False)
        for batch in batches:
            optimizer.zero_grad()
            net(batch).sum().backward()
            optimizer.step()
