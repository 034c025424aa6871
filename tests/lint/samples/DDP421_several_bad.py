import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


def accuracies(output, labels, ks):
    _, found = output.topk(max(ks))
    right = found.t().eq(labels)
    several = []
    for k in ks:
        several.append(right[:k].float().sum() / len(labels))
    return several


def validate(model, loader):
    sums = [0.0, 0.0]
    with torch.no_grad():
        for images, labels in loader:
            first, fifth = accuracies(model(images), labels, (1, 5))
            dist.all_reduce(first)
            dist.all_reduce(first)  # <-- DDP421
            first.div_(dist.get_world_size())
            fifth.div_(dist.get_world_size())
            sums[0] += first.item()
            sums[1] += fifth.item()
    return sums


def main(data):
    dist.init_process_group("gloo")
    model = DistributedDataParallel(nn.Linear(8, 8))
    loader = DataLoader(data, batch_size=4, sampler=DistributedSampler(data, shuffle=False))
    print(validate(model, loader))


if __name__ == "__main__":
    main(torch.load("images.pt"))
