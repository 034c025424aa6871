import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


def share(rows):
    count = torch.tensor(len(rows))
    dist.all_reduce(count, op=dist.ReduceOp.MAX)
    rows = nn.functional.pad(rows, (0, int(count) - len(rows)))
    parts = [torch.empty_like(rows) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, rows)
    return torch.cat(parts)


def total(rows):
    rows = rows.sum()
    dist.all_reduce(rows)
    return rows


def first_of(rows):
    top = rows.select(0, 0)
    parts = [torch.empty_like(top) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, top)
    return parts


def best_of(rows):
    place = rows.argmax()
    parts = [torch.empty_like(place) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, place)
    return parts


def one_of_each(batches):
    signs = []
    for batch in batches:
        if batch.sum() > 0:
            signs.append(batch.max())
        else:
            signs.append(batch.min())
    signs = torch.stack(signs)
    parts = [torch.empty_like(signs) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, signs)
    return parts


class Miner:
    def __init__(self, limit):
        self.limit = limit
        self.kept = []

    def add(self, step, distances):
        worst = distances.max()
        if step % 2:
            self.kept.append(worst)

    def all(self):
        return torch.stack(self.kept)


def main(data):
    dist.init_process_group("nccl")
    model = DistributedDataParallel(nn.Linear(4, 1))
    miner = Miner(0.5)
    odd = torch.arange(4) % 2 == 1
    hard = None
    loader = DataLoader(data, sampler=DistributedSampler(data, shuffle=False))
    for step, batch in enumerate(loader):
        distances = model(batch).abs().squeeze(1)
        distances.sum().backward()
        miner.add(step, distances.detach())
        hard = distances[distances > 1.0]
    odd_ones = share(batch[:, odd])
    room = odd_ones.new_empty(dist.get_world_size() * len(odd_ones))
    dist.all_gather_into_tensor(room, odd_ones)
    print(share(hard), total(hard), room)
    print(first_of(hard), best_of(hard), one_of_each(loader))
    worst = miner.all()
    parts = [torch.empty_like(worst) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, worst)


if __name__ == "__main__":
    main([torch.ones(4)] * 8)
