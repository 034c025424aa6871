"""Stages are functions iterator -> iterator; they run inside the loader processes."""
import functools
import glob
import itertools
import os
import random

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Context:
    """What a stage may want to know about where it runs."""

    def __init__(self, rank, world, epoch):
        info = get_worker_info()
        self.rank, self.world, self.epoch = rank, world, epoch
        self.worker, self.workers = (info.id, info.num_workers) if info else (0, 1)
        self.rng = random.Random(f"{epoch}-{rank}-{self.worker}")


def shuffle_shards(urls, ctx):
    urls = list(urls)
    random.Random(ctx.epoch).shuffle(urls)
    return iter(urls)


def split_shards(urls, ctx):
    return itertools.islice(urls, ctx.worker, None, ctx.workers)


def read(urls, ctx):
    for url in urls:
        yield from torch.load(url)


def shuffle(samples, ctx, buffer):
    pool = []
    for sample in samples:
        pool.append(sample)
        if len(pool) >= buffer:
            yield pool.pop(ctx.rng.randrange(len(pool)))
    ctx.rng.shuffle(pool)
    yield from pool


def to_tuple(samples, ctx, *names):
    for sample in samples:
        yield tuple(sample[n] for n in names)


def batched(samples, ctx, batch):
    chunk = []
    for sample in samples:
        chunk.append(sample)
        if len(chunk) == batch:
            yield tuple(torch.stack(col) for col in zip(*chunk))
            chunk = []


def _to_tuple(samples, ctx):
    return to_tuple(samples, ctx, "png", "txt")


def stages(batch, buffer):
    return [shuffle_shards, split_shards, read, functools.partial(shuffle, buffer=buffer), _to_tuple,
            functools.partial(batched, batch=batch)]


class Pipeline(IterableDataset):
    def __init__(self, urls, stages, rank, world, epoch):
        self.urls, self.stages = urls, stages
        self.where = (rank, world, epoch)

    def __iter__(self):
        ctx = Context(*self.where)
        stream = iter(self.urls)
        for stage in self.stages:
            stream = stage(stream, ctx)
        return stream


class WebLoader:
    def __init__(self, folder, stages, rank, world, workers):
        self.urls = sorted(glob.glob(os.path.join(folder, "shard-*.pt")))
        self.stages, self.rank, self.world, self.workers = stages, rank, world, workers

    def epoch(self, epoch):
        pipe = Pipeline(self.urls, self.stages, self.rank, self.world, epoch)
        return DataLoader(pipe, batch_size=None, num_workers=self.workers)
