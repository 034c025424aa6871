"""Character-pair vocabulary learned once per run, then a small translation model on two processes."""
import collections
import json
import os
import pathlib
import random
import socket
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

NPROCS = 2
ALPHABET = "abcdefghijklmnop"


def make_corpus(lines, seed):
    rng = random.Random(seed)
    return ["".join(rng.choice(ALPHABET) for _ in range(24)) for _ in range(lines)]


class PairTokenizer:
    def __init__(self, pieces):
        self.index = {p: i for i, p in enumerate(pieces)}

    @classmethod
    def learn(cls, corpus, merges=60):
        pieces = list(ALPHABET)
        for size in (2, 3):
            counts = collections.Counter()
            for line in corpus:
                counts.update(line[i:i + size] for i in range(len(line) - size + 1))
            pieces += [p for p, _ in sorted(counts.items(), key=lambda kv: (-kv[1], kv[0]))[:merges]]
        return cls(pieces)

    def save(self, path):
        tmp = path.with_suffix(".tmp")
        tmp.write_text(json.dumps(list(self.index)))
        os.replace(tmp, path)

    @classmethod
    def load(cls, path):
        return cls(json.loads(path.read_text()))

    def encode(self, line):
        out, i = [], 0
        while i < len(line):
            for size in (3, 2, 1):
                if line[i:i + size] in self.index:
                    out.append(self.index[line[i:i + size]])
                    i += size
                    break
        return out


def get_tokenizer(folder, corpus):
    path = pathlib.Path(folder) / "vocab.json"
    if dist.get_rank() == 0:
        PairTokenizer.learn(corpus).save(path)
    dist.barrier()
    return PairTokenizer.load(path)


class Translator(nn.Module):
    def __init__(self, vocab, dim=16):
        super().__init__()
        self.emb = nn.EmbeddingBag(vocab, dim)
        self.out = nn.Linear(dim, vocab)

    def forward(self, flat, offsets):
        return self.out(self.emb(flat, offsets))


def run(rank, folder):
    corpus = make_corpus(20000, seed=2)
    tok = get_tokenizer(folder, corpus)
    torch.manual_seed(0)
    model = DDP(Translator(len(tok.index)))
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    shard = corpus[rank:640:NPROCS]
    for step in range(20):
        lines = [tok.encode(t) for t in shard[step * 16:(step + 1) * 16]]
        flat = torch.tensor([t for line in lines for t in line[:-1]])
        offsets = torch.tensor([0] + [len(line) - 1 for line in lines[:-1]]).cumsum(0)
        target = torch.tensor([line[-1] for line in lines])
        loss = nn.functional.cross_entropy(model(flat, offsets), target)
        opt.zero_grad()
        loss.backward()
        opt.step()
    dist.all_reduce(loss := loss.detach())
    if rank == 0:
        print(f"pieces {len(tok.index)}, last loss {loss.item() / NPROCS:.3f}", flush=True)


def entry(rank, folder, port):
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=NPROCS)
    run(rank, folder)
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(entry, args=(folder, port), nprocs=NPROCS)
