"""Fine-tuning of a (toy) speech encoder for phone classification."""
import argparse
import logging
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO)
log = logging.getLogger("ft")


class EncoderLayer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, 2, batch_first=True)
        self.ffn = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        y = self.norm1(x)
        x = x + self.attn(y, y, y, need_weights=False)[0]
        return x + self.ffn(self.norm2(x))


class SpeechEncoder(nn.Module):
    def __init__(self, dim=24, layers=6, layerdrop=0.0, phones=10):
        super().__init__()
        self.layerdrop = layerdrop
        self.frontend = nn.Conv1d(1, dim, 10, 5)
        self.layers = nn.ModuleList([EncoderLayer(dim) for _ in range(layers)])
        self.head = nn.Linear(dim, phones)

    def forward(self, wav):
        x = F.gelu(self.frontend(wav.unsqueeze(1))).transpose(1, 2)
        for layer in self.layers:
            skip = self.training and torch.rand(()).item() < self.layerdrop
            if not skip:
                x = layer(x)
        return self.head(x.mean(1))


def batches(args, rank):
    g = torch.Generator().manual_seed(200 + rank)
    for _ in range(args.updates):
        phone = torch.randint(0, 10, (args.batch,), generator=g)
        t = torch.arange(100) / 100
        wav = torch.sin(6.28 * (phone[:, None] + 2) * t[None]) + 0.1 * torch.randn(args.batch, 100, generator=g)
        yield wav, phone


def parse():
    ap = argparse.ArgumentParser()
    ap.add_argument("--updates", type=int, default=40)
    ap.add_argument("--batch", type=int, default=8)
    ap.add_argument("--layers", type=int, default=6)
    ap.add_argument("--layerdrop", type=float, default=0.25)
    ap.add_argument("--lr", type=float, default=1e-3)
    ap.add_argument("--log-interval", type=int, default=10)
    return ap.parse_args()


def main():
    args = parse()
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    torch.manual_seed(1 + rank)
    encoder = SpeechEncoder(layers=args.layers, layerdrop=args.layerdrop)
    model = DDP(encoder, find_unused_parameters=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / 10))
    model.train()
    for num, (wav, phone) in enumerate(batches(args, rank)):
        loss = F.cross_entropy(model(wav), phone)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        scheduler.step()
        if rank == 0 and num % args.log_interval == 0:
            log.info("update %d loss %.3f", num, loss.item())


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
