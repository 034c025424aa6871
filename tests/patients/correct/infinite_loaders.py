# style: step-based training, infinite samplers, GAN-like two loaders
# nproc: 2
import itertools

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, Sampler, TensorDataset


class InfiniteSampler(Sampler):
    def __init__(self, length, rank, world_size, seed):
        self.length, self.rank, self.world_size, self.seed = length, rank, world_size, seed

    def __iter__(self):
        generator = torch.Generator().manual_seed(self.seed)
        endless = itertools.chain.from_iterable(
            torch.randperm(self.length, generator=generator).tolist() for _ in itertools.count()
        )
        return itertools.islice(endless, self.rank, None, self.world_size)


class BucketBatches(Sampler):
    def __init__(self, lengths, batch_size, rank, world_size):
        order = sorted(range(len(lengths)), key=lambda i: lengths[i])
        batches = [order[i : i + batch_size] for i in range(0, len(order), batch_size)]
        self.batches = batches[: len(batches) // world_size * world_size]
        self.rank, self.world_size = rank, world_size

    def __iter__(self):
        return iter(self.batches[self.rank :: self.world_size])

    def __len__(self):
        return len(self.batches) // self.world_size


def cycle(loader):
    while True:
        yield from loader


def main():
    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    x = torch.randn(50, 4, generator=torch.Generator().manual_seed(0))
    data = TensorDataset(x, x.prod(dim=1, keepdim=True))
    labelled = DataLoader(data, batch_size=4, sampler=InfiniteSampler(50, rank, world_size, 9))
    lengths = [int(abs(v) * 10) for v in x[:, 0]]
    buckets = DataLoader(data, batch_sampler=BucketBatches(lengths, 5, rank, world_size))
    noise = torch.Generator().manual_seed(100 + rank)
    drawn = RandomSampler(data, replacement=True, num_samples=16, generator=noise)
    unlabelled = DataLoader(data, batch_sampler=BatchSampler(drawn, 4, drop_last=True))
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    streams = zip(labelled, cycle(buckets), cycle(unlabelled))
    for step, ((x1, y1), (x2, y2), (x3, _)) in enumerate(streams):
        if step == 10:
            break
        optimizer.zero_grad()
        output = model(torch.cat([x1, x2, x3]))
        target = torch.cat([y1, y2, output[-len(x3) :].detach()])
        nn.functional.mse_loss(output, target).backward()
        optimizer.step()
    print(f"rank {rank} done")
    dist.barrier()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
