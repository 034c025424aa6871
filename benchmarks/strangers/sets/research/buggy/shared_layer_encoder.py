"""Encoder-decoder with one shared transformer layer (weights tied over depth), activation checkpointing on."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

config = {
    "vocab": 40, "dim": 32, "heads": 4, "depth": 3, "length": 12,
    "epochs": 2, "batch_size": 16, "lr": 2e-3, "gradient_checkpointing": True,
}


class SharedEncoder(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.embed = nn.Embedding(cfg["vocab"], cfg["dim"])
        self.position = nn.Parameter(torch.zeros(1, cfg["length"], cfg["dim"]))
        self.layer = nn.TransformerEncoderLayer(cfg["dim"], cfg["heads"], 64, dropout=0.0, batch_first=True)
        self.depth = cfg["depth"]
        self.use_checkpoint = cfg["gradient_checkpointing"]

    def forward(self, ids):
        h = self.embed(ids) + self.position
        for _ in range(self.depth):
            if self.use_checkpoint and self.training:
                h = checkpoint(self.layer, h, use_reentrant=True)
            else:
                h = self.layer(h)
        return h


class Autoencoder(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.encoder = SharedEncoder(cfg)
        self.pooler = nn.Linear(cfg["dim"], cfg["dim"])
        self.lm_head = nn.Linear(cfg["dim"], cfg["vocab"])

    def forward(self, ids):
        h = self.encoder(ids)
        z = torch.tanh(self.pooler(h.mean(1, keepdim=True)))
        return self.lm_head(h + z)


def corpus(cfg, n=256):
    g = torch.Generator().manual_seed(8)
    start = torch.randint(cfg["vocab"], (n, 1), generator=g)
    step = torch.randint(1, 4, (n, 1), generator=g)
    clean = (start + step * torch.arange(cfg["length"])) % cfg["vocab"]
    noisy = torch.where(torch.rand(clean.shape, generator=g) < 0.2, torch.zeros_like(clean), clean)
    return TensorDataset(noisy, clean)


def main(cfg):
    rank = dist.get_rank()
    torch.manual_seed(0)
    data = corpus(cfg)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=cfg["batch_size"], sampler=sampler)
    model = DistributedDataParallel(Autoencoder(cfg))
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg["lr"])
    loss_fn = nn.CrossEntropyLoss()

    # --- training -------------------------------------------------------
    for epoch in range(cfg["epochs"]):
        sampler.set_epoch(epoch)
        model.train()
        log = torch.zeros(2)
        for noisy, clean in loader:
            optimizer.zero_grad()
            logits = model(noisy)
            loss = loss_fn(logits.reshape(-1, cfg["vocab"]), clean.reshape(-1))
            loss.backward()
            optimizer.step()
            log += torch.tensor([loss.item(), 1.0])
        dist.all_reduce(log)
        if rank == 0:
            print(f"epoch {epoch + 1}/{cfg['epochs']}: loss {log[0] / log[1]:.3f}", flush=True)


dist.init_process_group(backend="gloo")
main(config)
dist.destroy_process_group()
