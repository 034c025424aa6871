"""Customer message intent classifier: bag of words, synchronous data parallel SGD."""
import argparse
import random

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

PHRASES = {
    "billing": "invoice charge refund card payment receipt bill",
    "shipping": "parcel courier delivery tracking address late package",
    "account": "login password username email profile locked reset",
    "technical": "crash error screen update install bug freeze",
    "cancel": "cancel stop subscription leave terminate end unsubscribe",
    "praise": "thanks great love happy awesome helpful excellent",
}
FILLER = "please my the a i with you help about today".split()


def make_messages(count, seed):
    rnd = random.Random(seed)
    rows = []
    for _ in range(count):
        intent = rnd.choice(list(PHRASES))
        words = rnd.choices(PHRASES[intent].split(), k=3) + rnd.choices(FILLER, k=4)
        rnd.shuffle(words)
        rows.append((" ".join(words), intent))
    return rows


def stable_bucket(word, size):
    h = 2166136261
    for ch in word.encode():
        h = ((h ^ ch) * 16777619) & 0xFFFFFFFF
    return h % size


class Router(nn.Module):
    def __init__(self, buckets, intents, dim=16):
        super().__init__()
        self.emb = nn.EmbeddingBag(buckets, dim, mode="mean")
        self.out = nn.Linear(dim, intents)

    def forward(self, tokens):
        return self.out(self.emb(tokens))


class Codec:
    def __init__(self, rows, buckets):
        self.buckets = buckets
        intents = {intent for _, intent in rows}
        self.index = {name: i for i, name in enumerate(sorted(intents))}

    def encode(self, rows):
        tok = torch.tensor([[stable_bucket(w, self.buckets) for w in text.split()] for text, _ in rows])
        lab = torch.tensor([self.index[i] for _, i in rows])
        return tok, lab


def average_gradients(model):
    world = float(dist.get_world_size())
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= world


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--messages", type=int, default=600)
    ap.add_argument("--epochs", type=int, default=12)
    ap.add_argument("--batch", type=int, default=20)
    ap.add_argument("--buckets", type=int, default=512)
    args = ap.parse_args()

    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    rows = make_messages(args.messages, seed=4)
    codec = Codec(rows, args.buckets)
    tokens, labels = codec.encode(rows[rank::world])

    torch.manual_seed(0)
    model = Router(args.buckets, len(codec.index))
    opt = torch.optim.Adam(model.parameters(), lr=0.02)
    g = torch.Generator().manual_seed(50 + rank)
    for epoch in range(args.epochs):
        for idx in torch.randperm(len(labels), generator=g).split(args.batch):
            loss = F.cross_entropy(model(tokens[idx]), labels[idx])
            opt.zero_grad(set_to_none=False)
            loss.backward()
            average_gradients(model)
            opt.step()
    held = make_messages(300, seed=99)
    t, y = codec.encode(held)
    if rank == 0:
        acc = (model(t).argmax(1) == y).float().mean().item()
        print(f"held-out accuracy {acc:.3f}")
    dist.barrier()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
