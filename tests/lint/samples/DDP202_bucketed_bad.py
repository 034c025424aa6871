"""Length-bucketed batches by a sampler of our own."""

import random
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, Sampler


class Sentences(Dataset):
    def __init__(self, n):
        rng = random.Random(0)
        self.rows = [[rng.randrange(50) for _ in range(rng.randint(3, 12))] for _ in range(n)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return torch.tensor(self.rows[i])


class BucketBatches(Sampler):
    def __init__(self, lengths, size, seed, rank, world):
        self.order = sorted(range(len(lengths)), key=lengths.__getitem__)
        self.size, self.seed, self.epoch = size, seed, 0
        self.rank, self.world = rank, world

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return len(self.order) // self.size

    def __iter__(self):
        batches = [
            self.order[i : i + self.size]
            for i in range(0, len(self.order) - self.size + 1, self.size)
        ]
        random.Random(self.seed + self.epoch).shuffle(batches)
        yield from batches


def pad(rows):
    return nn.utils.rnn.pad_sequence(rows, batch_first=True)


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    data = Sentences(300)
    lengths = [len(r) for r in data.rows]
    batches = BucketBatches(lengths, 8, 11, dist.get_rank(), dist.get_world_size())  # <-- DDP202
    loader = DataLoader(data, batch_sampler=batches, collate_fn=pad)
    emb = nn.Sequential(nn.Embedding(50, 16), nn.Linear(16, 50))
    model = DDP(emb)
    opt = torch.optim.Adam(model.parameters())
    for epoch in range(3):
        batches.set_epoch(epoch)
        for ids in loader:
            logits = model(ids)
            loss = nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
            opt.zero_grad()
            loss.backward()
            opt.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
