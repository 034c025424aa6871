"""Captioning-style pretraining from tar-like shards, streamed through a small pipeline of generators."""
import argparse
import shutil
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from web_shards_lib.pipeline import WebLoader, stages
from web_shards_lib.shards import write_shards


class Captioner(nn.Module):
    def __init__(self, vocab=24, dim=32, length=6):
        super().__init__()
        self.image = nn.Sequential(nn.Flatten(), nn.Linear(64, dim), nn.ReLU())
        self.embed = nn.Embedding(vocab, dim)
        self.gru = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, vocab)

    def forward(self, image, text):
        h0 = self.image(image).unsqueeze(0)
        h, _ = self.gru(self.embed(text[:, :-1]), h0)
        return self.out(h)


def prepare(rank, folder=None):
    box = [None]
    if rank == 0:
        box[0] = tempfile.mkdtemp(prefix="webshards_")
        write_shards(box[0], shards=8, per_shard=24)
    dist.broadcast_object_list(box, src=0)
    return box[0]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--batch-size", type=int, default=8)
    p.add_argument("--workers", type=int, default=1)
    p.add_argument("--lr", type=float, default=3e-3)
    args = p.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    folder = prepare(rank)
    loader = WebLoader(folder, stages(batch=args.batch_size, buffer=32), rank, world, args.workers)
    model = DDP(Captioner())
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        stats = torch.zeros(2)
        for image, text in loader.epoch(epoch):
            logits = model(image, text)
            loss = F.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())
            opt.zero_grad()
            loss.backward()
            opt.step()
            stats += torch.tensor([loss.item() * len(text), float(len(text))])
        dist.all_reduce(stats)
        if rank == 0:
            print(f"epoch {epoch} loss {stats[0] / stats[1]:.4f} samples {int(stats[1])}", flush=True)
    dist.barrier()
    if rank == 0:
        shutil.rmtree(folder)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
