import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.utils.data import Dataset


class Change:
    def __init__(self, kind):
        self.kind = kind
        self.by_name = {"twice": lambda row: 2 * row, "back": lambda row: row.flip(0)}

    def __call__(self, row):
        return self.by_name[self.kind](row)


class Chain:
    def __init__(self, changes):
        self.changes = changes

    def __call__(self, row):
        for each in self.changes:
            row = each(row)
        return row


class Rows(Dataset):
    def __init__(self, change):
        self.rows, self.change = torch.arange(12.0).view(6, 2), change

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, number):
        return self.change(self.rows[number])


def run(rank, world, rows):
    dist.init_process_group("gloo", rank=rank, world_size=world)
    print(rows[rank])
    dist.destroy_process_group()


if __name__ == "__main__":
    rows = Rows(Chain([Change(kind) for kind in ("twice", "back")]))
    mp.spawn(run, args=(2, rows), nprocs=2)  # <-- DDP117
