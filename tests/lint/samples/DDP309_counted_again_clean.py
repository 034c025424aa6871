"""The loss is a mean over the words of all ranks, and so is what is told."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from sentences import Sentences, padded


def loss_of(scores, labels, real):
    each = nn.functional.cross_entropy(scores.transpose(1, 2), labels, reduction="none")
    total = (each * real).sum()
    number = real.sum()
    dist.all_reduce(number)
    return total * dist.get_world_size() / number, total


def main():
    dist.init_process_group("gloo")
    sentences = Sentences("train")
    sampler = DistributedSampler(sentences)
    batches = DataLoader(sentences, 8, sampler=sampler, collate_fn=padded)
    model = DistributedDataParallel(nn.Sequential(nn.Embedding(90, 16), nn.Linear(16, 5)))
    learner = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        told = torch.zeros(2)
        for words, labels, real in batches:
            loss, total = loss_of(model(words), labels, real)
            learner.zero_grad()
            loss.backward()
            learner.step()
            told += torch.stack([total.detach(), real.sum()])
        dist.all_reduce(told)
        if dist.get_rank() == 0:
            print(epoch, (told[0] / told[1]).item())


if __name__ == "__main__":
    main()
