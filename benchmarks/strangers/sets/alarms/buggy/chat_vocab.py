"""Word-level chat model. Reads its part of the dialogues, builds the vocabulary, trains."""
import collections
import os
import random

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

SUBJ = "i you we they he she".split()
TOPIC = {"food": "eat cook taste bake fry".split(), "sport": "run jump swim throw".split()}


def write_corpus(n=80):
    rng = random.Random(5)
    for i in range(n):
        topic = "food" if i % 2 == 0 else "sport"
        yield f"{rng.choice(SUBJ)} {rng.choice(TOPIC[topic])} and {rng.choice(SUBJ)} {rng.choice(TOPIC[topic])}"


class Tokenizer:
    specials = ["<pad>", "<bos>"]

    def __init__(self):
        self.itos = list(self.specials)
        self.stoi = {w: i for i, w in enumerate(self.itos)}

    def add_tokens(self, words):
        for w in sorted(set(words) - set(self.itos)):
            self.stoi[w] = len(self.itos)
            self.itos.append(w)

    def __len__(self):
        return len(self.itos)

    def __call__(self, line):
        return torch.tensor([1] + [self.stoi[w] for w in line.split()])


class ChatLM(nn.Module):
    def __init__(self, vocab, dim=24):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.gru = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, vocab)

    def forward(self, ids):
        return self.out(self.gru(self.emb(ids[:, :-1]))[0])


def main():
    dist.init_process_group("gloo")
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    corpus = list(write_corpus())
    lines = corpus[rank::world]
    tok = Tokenizer()
    counts = collections.Counter(w for line in lines for w in line.split())
    tok.add_tokens(w for w, c in counts.items() if c >= 1)
    data = torch.stack([tok(line) for line in lines])
    torch.manual_seed(0)
    model = DDP(ChatLM(len(tok)))
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(2):
        for ids in data.split(8):
            loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), ids[:, 1:].flatten())
            opt.zero_grad()
            loss.backward()
            opt.step()
        if rank == 0:
            print(f"epoch {epoch} vocab {len(tok)} loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
