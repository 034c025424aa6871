"""Speech generator with a pretrained text encoder that stays frozen for the first epochs."""
import os
from types import SimpleNamespace

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

hps = SimpleNamespace(epochs=4, steps=5, lr=2e-3, dim=16, port="29763")


class TextEncoder(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.bert = nn.Sequential(nn.Embedding(30, dim), nn.Linear(dim, dim), nn.Tanh())
        self.proj = nn.Linear(dim, dim)

    def forward(self, ids):
        return self.proj(self.bert(ids))


class SynthesizerTrn(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.enc_p = TextEncoder(dim)
        self.dec = nn.Sequential(nn.Linear(dim, 32), nn.ReLU(), nn.Linear(32, 8))

    def forward(self, ids):
        return self.dec(self.enc_p(ids))


def batches(rank, n):
    g = torch.Generator().manual_seed(rank)
    for _ in range(n):
        ids = torch.randint(0, 30, (4, 10), generator=g)
        yield ids, torch.sin(ids.float().unsqueeze(-1) * torch.arange(1, 9) / 9)


def set_bert(net_g, flag):
    for child in net_g.module.enc_p.bert.children():
        for param in child.parameters():
            param.requires_grad = flag


def run(rank, n_proc):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = hps.port
    dist.init_process_group(backend="gloo", init_method="env://", world_size=n_proc, rank=rank)
    train_and_report(rank)
    dist.destroy_process_group()


def train_and_report(rank):
    torch.manual_seed(1234)
    net_g = SynthesizerTrn(hps.dim)
    optim_g = torch.optim.AdamW(net_g.parameters(), hps.lr, betas=(0.8, 0.99))
    net_g = DDP(net_g, find_unused_parameters=True)
    frozen = [p.detach().clone() for p in net_g.module.enc_p.bert.parameters()]
    for epoch in range(1, hps.epochs + 1):
        set_bert(net_g, epoch > hps.epochs // 4)
        for ids, mel in batches(rank, hps.steps):
            loss = nn.functional.l1_loss(net_g(ids), mel)
            optim_g.zero_grad()
            loss.backward()
            optim_g.step()
        if rank == 0:
            moved = sum(int(not torch.equal(a, b)) for a, b in zip(frozen, net_g.module.enc_p.bert.parameters()))
            print(f"====> Epoch: {epoch} loss {loss.item():.3f} ({moved} encoder tensors moved)", flush=True)


def main():
    mp.spawn(run, nprocs=2, args=(2,))


if __name__ == "__main__":
    main()
