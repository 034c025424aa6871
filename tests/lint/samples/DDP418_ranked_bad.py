import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler

KINDS = ("field", "town", "wood")


def judge(told, truth, right):
    often = torch.bincount(truth, minlength=len(KINDS))
    for kind in often.argsort(descending=True)[:2].tolist():
        right[KINDS[kind]] = (told[truth == kind] == kind).float().mean()


def main(rows):
    dist.init_process_group("gloo")
    right = {}
    for told, truth in DataLoader(rows, 8, sampler=DistributedSampler(rows)):
        judge(told, truth, right)
    for name in sorted(right):  # <- DDP418
        dist.all_reduce(right[name])
        print(name, right[name] / dist.get_world_size())


main(torch.load("rows.pt"))
