import itertools

from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Sharded(IterableDataset):
    def __init__(self, documents, rank, world_size):
        self.documents, self.rank, self.world_size = documents, rank, world_size

    def __iter__(self):
        info = get_worker_info()
        number, count = (info.id, info.num_workers) if info else (0, 1)
        first = self.rank * count + number
        yield from itertools.islice(self.documents, first, None, self.world_size * count)


class Plain(IterableDataset):
    def __init__(self, numbers):
        self.numbers = numbers

    def __iter__(self):
        yield from self.numbers


def train(net, documents, rank, world_size):
    model = DDP(net)
    loader = DataLoader(Sharded(documents, rank, world_size), num_workers=2)
    return model, loader, DataLoader(Plain(documents[rank::world_size]))
