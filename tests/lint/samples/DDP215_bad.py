from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset


class Stream(IterableDataset):
    def __init__(self, documents):
        self.documents = documents

    def __iter__(self):
        yield from self.documents


class Sharded(IterableDataset):
    def __init__(self, count, rank, world_size):
        self.numbers = range(rank, count, world_size)

    def __iter__(self):
        for number in self.numbers:
            yield number


def train(net, documents, rank, world_size):
    model = DDP(net)
    loader = DataLoader(Stream(documents), batch_size=4)  # <-- DDP215
    other = DataLoader(Sharded(96, rank, world_size), num_workers=2)  # <-- DDP215
    return model, loader, other
