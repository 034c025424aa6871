"""Audio-text contrastive pretraining with features shared between workers."""
import argparse

import torch
import torch.distributed as dist
import torch.distributed.nn.functional as dist_fn
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


class TwoTower(nn.Module):
    def __init__(self, audio_dim, vocab, dim):
        super().__init__()
        self.audio = nn.Sequential(nn.Linear(audio_dim, 64), nn.GELU(), nn.Linear(64, dim))
        self.text = nn.EmbeddingBag(vocab, dim)
        self.logit_scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, audio, tokens):
        a = F.normalize(self.audio(audio), dim=-1)
        t = F.normalize(self.text(tokens), dim=-1)
        return a, t, self.logit_scale.exp()


def gather_features(audio, text):
    return [torch.cat(dist_fn.all_gather(local)) for local in (audio, text)]


class ContrastiveLoss(nn.Module):
    """Local rows against global columns; memory grows linearly in the number of workers."""

    def forward(self, audio, text, scale):
        all_audio, all_text = gather_features(audio, text)
        per_audio = scale * audio @ all_text.T
        per_text = scale * text @ all_audio.T
        labels = torch.arange(len(audio)) + len(audio) * dist.get_rank()
        return (F.cross_entropy(per_audio, labels) + F.cross_entropy(per_text, labels)) / 2


def clips(rank, steps, batch, audio_dim, vocab):
    g = torch.Generator().manual_seed(700 + rank)
    table = torch.randn(vocab, audio_dim, generator=torch.Generator().manual_seed(6))
    for _ in range(steps):
        tokens = torch.randint(0, vocab, (batch, 5), generator=g)
        yield table[tokens].mean(1) + 0.1 * torch.randn(batch, audio_dim, generator=g), tokens


def recall_at_1(model, data):
    hits = torch.zeros(2)
    with torch.no_grad():
        for audio, tokens in data:
            a, t, _ = model(audio, tokens)
            hits += torch.tensor([float(((a @ t.T).argmax(1) == torch.arange(len(a))).sum()), float(len(a))])
    dist.all_reduce(hits)
    return (hits[0] / hits[1]).item()


def main(args):
    rank = dist.get_rank()
    torch.manual_seed(args.seed)
    model = DDP(TwoTower(args.audio_dim, args.vocab, args.dim))
    criterion = ContrastiveLoss()
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    for audio, tokens in clips(rank, args.steps, args.batch, args.audio_dim, args.vocab):
        loss = criterion(*model(audio, tokens))
        opt.zero_grad()
        loss.backward()
        opt.step()
    score = recall_at_1(model.module, clips(rank + 1000, 3, args.batch, args.audio_dim, args.vocab))
    if rank == 0:
        print(f"recall@1 {score:.3f}", flush=True)


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    for name, default in [("steps", 25), ("batch", 12), ("audio-dim", 20), ("vocab", 30), ("dim", 16), ("seed", 0)]:
        p.add_argument(f"--{name}", type=int, default=default)
    p.add_argument("--lr", type=float, default=5e-3)
    dist.init_process_group("gloo")
    main(p.parse_args())
    dist.destroy_process_group()
