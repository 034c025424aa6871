import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset


def encoder(vocabulary, width, seen):
    def padded(row):
        for place in range(width):
            if place >= len(row):
                row = row + [place % 2]
            elif row[place] in seen:
                row[place] = seen[row[place]]
        return row

    def encode(line, number):
        words = line.split("\t")
        negatives = [int(each) for each in words[2].split(",")]
        for negative in negatives:
            for begin in range(number, len(words)):
                row = [vocabulary[word] for word in words[begin:]]
                for word in words:
                    row = padded(row) if word in vocabulary else padded([begin, *row])
                    seen[word] = row[0]
                yield torch.tensor(row), torch.tensor(negative)

    return encode


class Lines(IterableDataset):
    def __init__(self, lines, encode):
        self.lines = lines
        self.encode = encode
        self.number, self.count = 0, 1

    def __iter__(self):
        if dist.is_initialized():
            self.number, self.count = dist.get_rank(), dist.get_world_size()
        for place, line in enumerate(self.lines):
            if place % self.count != self.number:
                continue
            for pair in self.encode(line, place):
                yield pair


def run(net, optimizer, lines, vocabulary, width):
    model = DistributedDataParallel(net)
    if width > 32:
        source = Lines(lines, encoder(vocabulary, width, {}))
    else:
        source = Lines(lines, encoder(vocabulary, 16, {}))
    for rows, labels in DataLoader(source, batch_size=8):
        loss = torch.nn.functional.cross_entropy(model(rows), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
