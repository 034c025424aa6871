"""Topic classifier; trains on all workers, the small test set is scored once per epoch by the main worker."""
import os
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

from bench_lib.metrics import MacroF1, MetricCollection, MulticlassAccuracy


@dataclass
class Setup:
    vocab: int = 200
    topics: int = 5
    length: int = 20
    epochs: int = 3
    lr: float = 5e-3
    port: int = 29641


def documents(cfg, n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(cfg.topics, (n,), generator=g)
    per = cfg.vocab // cfg.topics
    own = y[:, None] * per + torch.randint(per, (n, cfg.length), generator=g)
    other = torch.randint(cfg.vocab, (n, cfg.length), generator=g)
    return TensorDataset(torch.where(torch.rand(n, cfg.length, generator=g) < 0.4, own, other), y)


class BagOfEmbeddings(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.emb = nn.EmbeddingBag(cfg.vocab, 24)
        self.head = nn.Sequential(nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, cfg.topics))

    def forward(self, tokens):
        return self.head(self.emb(tokens))


def build_metrics(cfg):
    return MetricCollection(
        acc=MulticlassAccuracy(sync_on_compute=False),
        f1=MacroF1(cfg.topics, sync_on_compute=False),
    )


@torch.no_grad()
def test(net, loader, metrics):
    net.eval()
    metrics.reset()
    for tokens, y in loader:
        metrics.update(net(tokens), y)
    net.train()
    return metrics.compute()


def train(rank, cfg):
    torch.manual_seed(7)
    model = DDP(BagOfEmbeddings(cfg))
    train_set = documents(cfg, 512, 1)
    sampler = DistributedSampler(train_set)
    loader = DataLoader(train_set, batch_size=32, sampler=sampler)
    test_loader = DataLoader(documents(cfg, 128, 2), batch_size=64)
    metrics = build_metrics(cfg)
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    for epoch in range(cfg.epochs):
        sampler.set_epoch(epoch)
        for tokens, y in loader:
            opt.zero_grad()
            nn.functional.cross_entropy(model(tokens), y).backward()
            opt.step()
        if rank == 0:
            scores = test(model.module, test_loader, metrics)
            print(f"epoch {epoch} " + " ".join(f"{k}={v:.3f}" for k, v in scores.items()), flush=True)
        dist.barrier()


def worker(rank, world_size, cfg):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(cfg.port)
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    train(rank, cfg)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(worker, args=(2, Setup()), nprocs=2, join=True)
