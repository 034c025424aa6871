"""Metric learning with an arcface-like margin loss; losses are assembled from mixins."""
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class WeightRegularizerMixin:
    def __init__(self, regularizer=None, reg_weight=1.0, **kwargs):
        super().__init__(**kwargs)
        self.reg_weight = reg_weight
        self.regularizer = regularizer if regularizer is not None else lambda w: w.new_zeros(())

    def regularization(self, weights):
        return self.reg_weight * self.regularizer(weights)


class EmbeddingNormMixin:
    def __init__(self, norm_weight=0.0, **kwargs):
        super().__init__(**kwargs)
        self.norm_weight = norm_weight

    def norm_penalty(self, emb):
        return self.norm_weight * (emb.norm(dim=1) - 1).pow(2).mean()


class MarginLoss(WeightRegularizerMixin, EmbeddingNormMixin, nn.Module):
    def __init__(self, num_classes, dim, margin=0.2, scale=16.0, **kwargs):
        super().__init__(**kwargs)
        self.W = nn.Parameter(torch.randn(num_classes, dim) * 0.1)
        self.margin, self.scale = margin, scale

    def forward(self, emb, labels):
        cos = F.normalize(emb) @ F.normalize(self.W).t()
        cos = cos - self.margin * F.one_hot(labels, cos.shape[1])
        return F.cross_entropy(self.scale * cos, labels) + self.regularization(self.W) + self.norm_penalty(emb)


class Embedder(nn.Module):
    def __init__(self, loss_func, dim):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(20, 48), nn.ReLU(), nn.Linear(48, dim))
        self.loss_func = loss_func

    def forward(self, x, labels):
        return self.loss_func(self.trunk(x), labels)


def toy_faces(n, classes, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(classes, (n,), generator=g)
    centers = torch.randn(classes, 20, generator=torch.Generator().manual_seed(99))
    return TensorDataset(centers[y] + 0.7 * torch.randn(n, 20, generator=g), y)


def train(rank, loss_func, hparams):
    torch.manual_seed(hparams["seed"])
    model = DistributedDataParallel(Embedder(loss_func, hparams["dim"]))
    dataset = toy_faces(480, hparams["classes"], 1)
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=hparams["batch_size"], sampler=sampler)
    optimizer = torch.optim.SGD(model.parameters(), lr=hparams["lr"], momentum=0.9)
    for epoch in range(hparams["epochs"]):
        sampler.set_epoch(epoch)
        running = torch.zeros(2)
        for x, y in loader:
            optimizer.zero_grad()
            loss = model(x, y)
            loss.backward()
            optimizer.step()
            running += torch.tensor([loss.item(), 1.0])
        dist.all_reduce(running)
        if rank == 0:
            print(f"epoch {epoch}: loss {running[0] / running[1]:.4f}", flush=True)


def main_worker(rank, world_size, loss_func, hparams):
    os.environ.update(MASTER_ADDR="localhost", MASTER_PORT="29719")
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    train(rank, loss_func, hparams)
    dist.destroy_process_group()


def main():
    hparams = dict(seed=3, dim=12, classes=8, batch_size=24, lr=0.05, epochs=3)
    torch.manual_seed(hparams["seed"])
    loss_func = MarginLoss(hparams["classes"], hparams["dim"], norm_weight=0.01)
    world_size = int(os.environ.get("N_WORKERS", 2))
    mp.spawn(main_worker, args=(world_size, loss_func, hparams), nprocs=world_size)


if __name__ == "__main__":
    main()
