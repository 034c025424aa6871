import random
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


def read_shard(k, docs, block, vocab):
    g = torch.Generator().manual_seed(k)
    for _ in range(docs):
        start = torch.randint(vocab, (1,), generator=g)
        stride = torch.randint(1, 4, (1,), generator=g)
        yield (start + stride * torch.arange(block + 1)) % vocab


class ShardStream(IterableDataset):
    """Streams token blocks out of pre-tokenised shards; shards are dealt out to the
    readers, each reader walks through its own in a fresh order every epoch."""

    def __init__(self, n_shards, docs, block, vocab, epoch, seed):
        self.order = list(range(n_shards))
        random.Random(seed + epoch).shuffle(self.order)
        self.docs, self.block, self.vocab = docs, block, vocab

    def __iter__(self):
        info = get_worker_info()
        reader, readers = (0, 1) if info is None else (info.id, info.num_workers)
        rank, world = dist.get_rank(), dist.get_world_size()
        reader, readers = rank * readers + reader, world * readers
        for k in self.order[reader::readers]:
            for doc in read_shard(k, self.docs, self.block, self.vocab):
                yield doc[:-1], doc[1:]


def get_loader(tc, gc, epoch):
    stream = ShardStream(tc.n_shards, tc.docs_per_shard, gc.block, gc.vocab, epoch, tc.seed)
    return DataLoader(stream, batch_size=tc.batch, num_workers=tc.workers)
