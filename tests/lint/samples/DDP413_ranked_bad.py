import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler

KINDS = ("field", "town", "wood")


class Means:
    def __init__(self):
        self.sums = {}

    def add(self, name, value):
        before, number = self.sums.get(name, (0.0, 0))
        self.sums[name] = before + value, number + 1

    def of_all(self):
        found = {}
        for name, (total, number) in self.sums.items():  # <-- DDP413
            mean = torch.tensor(total / number)
            dist.all_reduce(mean)
            found[name] = mean.item() / dist.get_world_size()
        return found


def judge(told, truth, means):
    often = torch.bincount(truth, minlength=len(KINDS))
    for kind in often.argsort(descending=True).tolist():
        of_kind = truth == kind
        right = (told[of_kind] == kind).float().mean() if often[kind] > 0 else 1.0
        means.add(KINDS[kind], float(right))


def main(rows):
    dist.init_process_group("gloo")
    means = Means()
    for told, truth in DataLoader(rows, 8, sampler=DistributedSampler(rows)):
        judge(told, truth, means)
    print(means.of_all())


main(torch.load("rows.pt"))
