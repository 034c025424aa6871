"""Token tagger; entity spans of all processes are collected as python objects for scoring."""
import random

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler, Subset

TAGS = ("O", "B", "I")


class Sentences(Dataset):
    def __init__(self, count, seed):
        rnd = random.Random(seed)
        self.rows = []
        for _ in range(count):
            n = rnd.randint(5, 14)
            words = [rnd.randrange(80) for _ in range(n)]
            tags = [0] * n
            for _ in range(rnd.randint(0, 2)):
                at = rnd.randrange(n - 2)
                words[at], words[at + 1] = 80 + rnd.randrange(10), 90 + rnd.randrange(10)
                tags[at], tags[at + 1] = 1, 2
            self.rows.append((words, tags))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return i, self.rows[i]


def pad(items):
    n = max(len(w) for _, (w, _) in items)
    words = torch.zeros(len(items), n, dtype=torch.long)
    tags = torch.full((len(items), n), -100)
    for k, (_, (w, t)) in enumerate(items):
        words[k, : len(w)] = torch.tensor(w)
        tags[k, : len(t)] = torch.tensor(t)
    return [i for i, _ in items], words, tags


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(100, 16)
        self.conv = nn.Conv1d(16, 32, 3, padding=1)
        self.out = nn.Linear(32, len(TAGS))

    def forward(self, words):
        h = torch.relu(self.conv(self.emb(words).transpose(1, 2)))
        return self.out(h.transpose(1, 2))


def spans(tags):
    return {i for i, t in enumerate(tags) if t == 1}


@torch.no_grad()
def tag(model, data, rank, world):
    mine = Subset(data, range(rank, len(data), world))
    found = {}
    for ids, words, tags in DataLoader(mine, 8, collate_fn=pad):
        guess = model(words).argmax(-1)
        for k, i in enumerate(ids):
            n = int((tags[k] >= 0).sum())
            found[i] = guess[k, :n].tolist()
    return found


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    train, test = Sentences(160, 1), Sentences(47, 2)
    sampler = DistributedSampler(train)
    loader = DataLoader(train, 8, sampler=sampler, collate_fn=pad)
    model = DistributedDataParallel(Tagger())
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(5):
        sampler.set_epoch(epoch)
        for _, words, tags in loader:
            loss = nn.functional.cross_entropy(model(words).flatten(0, 1), tags.flatten())
            opt.zero_grad()
            loss.backward()
            opt.step()
        found = tag(model.module, test, rank, world)
        box = [None] * world if rank == 0 else None
        dist.gather_object(found, box, dst=0)
        if rank == 0:
            merged = {k: v for part in box for k, v in part.items()}
            tp = sum(len(spans(merged[i]) & spans(test.rows[i][1])) for i in range(len(test)))
            total = sum(len(spans(merged[i])) + len(spans(test.rows[i][1])) for i in range(len(test)))
            print(f"epoch {epoch} f1 {2 * tp / max(1, total):.3f} on {len(merged)} sentences", flush=True)
    dist.barrier()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
