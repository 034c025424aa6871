from collections import defaultdict

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Reviews(Dataset):
    def __init__(self, path):
        with open(path) as lines:
            self.rows = [line.rstrip().split("\t") for line in lines]
        stars = {row[0] for row in self.rows}
        self.star = dict(zip(stars, range(len(stars))))  # <-- DDP213
        self.word = {}
        seen = set()
        for row in self.rows:
            for word in row[1].split():
                seen.add(word)
        for word in seen:
            self.word[word] = len(self.word)  # <-- DDP213
        self.shops = list(set(row[2] for row in self.rows))

    def shop(self, name):
        return self.shops.index(name)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, number):
        star, text, shop = self.rows[number]
        words = torch.tensor([self.word[each] for each in text.split()[:8]])
        return words, self.star[star]


def groups(table):
    by = defaultdict(set)
    for kind, name in table:
        by[kind].add(name)
    return {
        kind: {name: number for number, name in enumerate(names)}  # <-- DDP213
        for kind, names in by.items()
    }


def main(path="reviews.tsv"):
    dist.init_process_group("gloo")
    data = Reviews(path)
    places = groups([("city", "Ulm"), ("city", "Bonn"), ("land", "Bayern")])
    sampler = DistributedSampler(data)
    torch.manual_seed(0)
    net = nn.EmbeddingBag(len(data.word) + len(places["city"]), len(data.star))
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for words, star in DataLoader(data, 16, sampler=sampler):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(words), star).backward()
            optimizer.step()


main()
