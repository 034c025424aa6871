"""Unsupervised sentence embeddings: the same sentence twice through dropout is a positive pair."""
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


@dataclass
class ModelConfig:
    vocab_size: int = 64
    hidden: int = 24
    layers: int = 2
    dropout: float = 0.1
    pooler_type: str = "avg"
    temperature: float = 0.05


@dataclass
class TrainConfig:
    epochs: int = 2
    batch_size: int = 8
    lr: float = 1e-3
    seed: int = 42


class Pooler(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.dense = nn.Linear(hidden, hidden)

    def forward(self, states):
        return torch.tanh(self.dense(states[:, 0]))


class TextEncoder(nn.Module):
    def __init__(self, cfg, add_pooling_layer=True):
        super().__init__()
        self.embeddings = nn.Embedding(cfg.vocab_size, cfg.hidden)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(cfg.hidden, 4, 48, cfg.dropout, batch_first=True) for _ in range(cfg.layers)
        )
        self.pooler = Pooler(cfg.hidden) if add_pooling_layer else None

    def forward(self, ids):
        h = self.embeddings(ids)
        for layer in self.layers:
            h = layer(h)
        pooled = self.pooler(h) if self.pooler is not None else None
        return h, pooled


class ContrastiveModel(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.encoder = TextEncoder(cfg, add_pooling_layer=cfg.pooler_type == "cls")

    def embed(self, ids):
        states, pooled = self.encoder(ids)
        return pooled if self.cfg.pooler_type == "cls" else states.mean(1)

    def forward(self, ids):
        a, b = self.embed(ids), self.embed(ids)
        sim = F.cosine_similarity(a[:, None], b[None], dim=-1) / self.cfg.temperature
        return F.cross_entropy(sim, torch.arange(len(ids)))


def train(mcfg, tcfg):
    rank = dist.get_rank()
    corpus = torch.randint(0, mcfg.vocab_size, (96, 12), generator=torch.Generator().manual_seed(tcfg.seed))
    data = TensorDataset(corpus)
    sampler = DistributedSampler(data, seed=tcfg.seed)
    loader = DataLoader(data, batch_size=tcfg.batch_size, sampler=sampler)
    torch.manual_seed(tcfg.seed)
    model = DDP(ContrastiveModel(mcfg))
    torch.manual_seed(tcfg.seed + 1000 + rank)
    optimizer = torch.optim.AdamW(model.parameters(), lr=tcfg.lr)
    for epoch in range(tcfg.epochs):
        sampler.set_epoch(epoch)
        for (ids,) in loader:
            loss = model(ids)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        mean = loss.detach() / dist.get_world_size()
        dist.all_reduce(mean)
        if rank == 0:
            print(f"epoch {epoch} last loss {mean.item():.4f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train(ModelConfig(), TrainConfig())
    dist.destroy_process_group()
