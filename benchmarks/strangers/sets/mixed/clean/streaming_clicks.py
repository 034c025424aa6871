"""Click-through model on a stream of shard files that are generated on the fly."""
import itertools

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

SETTINGS = {"shards": 8, "rows_per_shard": 48, "batch": 16, "epochs": 2, "workers": 2, "lr": 1e-2, "seed": 77}


def read_shard(number, rows, seed):
    g = torch.Generator().manual_seed(seed * 10_000 + number)
    for _ in range(rows):
        ids = torch.randint(0, 50, (3,), generator=g)
        yield ids, (ids.sum() % 3 == 0).float()


class ClickStream(IterableDataset):
    def __init__(self, cfg, rank, world):
        self.cfg, self.rank, self.world = cfg, rank, world
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def shard_order(self):
        g = torch.Generator().manual_seed(self.cfg["seed"] + self.epoch)
        return torch.randperm(self.cfg["shards"], generator=g).tolist()

    def __iter__(self):
        info = get_worker_info()
        index, count = (info.id, info.num_workers) if info else (0, 1)
        index, count = self.rank * count + index, self.world * count
        for number in itertools.islice(self.shard_order(), index, None, count):
            yield from read_shard(number, self.cfg["rows_per_shard"], self.cfg["seed"])


class Recommender(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.EmbeddingBag(50, 8, mode="sum")
        self.mlp = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, ids):
        return self.mlp(self.table(ids)).squeeze(-1)


def fit(cfg):
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(cfg["seed"])
    model = DistributedDataParallel(Recommender())
    optim = torch.optim.Adam(model.parameters(), lr=cfg["lr"])
    stream = ClickStream(cfg, rank, world)
    loader = DataLoader(stream, batch_size=cfg["batch"], num_workers=cfg["workers"])
    for epoch in range(cfg["epochs"]):
        stream.set_epoch(epoch)
        seen = torch.zeros(2)
        for ids, clicked in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(model(ids), clicked)
            optim.zero_grad()
            loss.backward()
            optim.step()
            seen += torch.tensor([loss.item() * len(ids), float(len(ids))])
        dist.all_reduce(seen)
        if rank == 0:
            print(f"epoch {epoch}: logloss {(seen[0] / seen[1]).item():.4f} on {world} processes", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    fit(SETTINGS)
    dist.destroy_process_group()
