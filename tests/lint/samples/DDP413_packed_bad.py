import torch
import torch.distributed as dist


class Tally:
    def __init__(self, *kinds):
        self.kinds = frozenset(kinds)
        self.total = dict.fromkeys(self.kinds, 0.0)

    def add(self, kind, value):
        self.total[kind] += value

    def everywhere(self):
        row = torch.tensor([self.total[kind] for kind in self.kinds])  # <-- DDP413
        dist.all_reduce(row)
        return dict(zip(self.kinds, row.tolist()))


def longest(lengths):
    names = {name.lower() for name in lengths}
    rows = []
    for name in names:
        rows.append(torch.tensor(float(lengths[name])))
    packed = torch.stack(rows).log()  # <-- DDP413
    shares = [torch.zeros_like(packed) for _ in range(dist.get_world_size())]
    dist.all_gather(shares, packed)
    return shares


def overall(lengths):
    names = {name.lower() for name in lengths}
    total = torch.tensor([lengths[name] for name in names]).sum()
    dist.all_reduce(total)
    return total


def main():
    dist.init_process_group("gloo")
    tally = Tally("right", "wrong", "open")
    tally.add("right", dist.get_rank())
    print(tally.everywhere(), longest({"a": 1, "b": 2}), overall({"a": 1}))


main()
