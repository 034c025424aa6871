"""Train entry point in the style of a YAML-driven foundry."""
import shutil
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel

from tokenizer_signal_lib.builders import WORDS, build_tokenizer


class Config(dict):
    __getattr__ = dict.__getitem__


DEFAULTS = Config(
    seed=3, steps=10, batch=8, context=4,
    model=Config(width=24, depth=2),
    optimizer=Config(name="AdamW", lr=5e-3),
)


class WindowLM(nn.Module):
    def __init__(self, vocab, context, cfg):
        super().__init__()
        self.embed = nn.Embedding(vocab, cfg.width)
        layers, size = [], context * cfg.width
        for _ in range(cfg.depth):
            layers += [nn.Linear(size, cfg.width), nn.ReLU()]
            size = cfg.width
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(cfg.width, vocab)

    def forward(self, ids):
        return self.head(self.body(self.embed(ids).flatten(1)))


def windows(vocab, cfg, rank):
    ids = torch.tensor([vocab[w] for w in WORDS])
    g = torch.Generator().manual_seed(cfg.seed + 1 + rank)
    for _ in range(cfg.steps):
        at = torch.randint(0, len(ids) - cfg.context, (cfg.batch,), generator=g)
        yield torch.stack([ids[a:a + cfg.context] for a in at]), ids[at + cfg.context]


def shared_folder():
    box = [tempfile.mkdtemp(prefix="foundry_") if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(box, src=0)
    return box[0]


def train(cfg):
    rank = dist.get_rank()
    folder = shared_folder()
    vocab = build_tokenizer(folder)
    torch.manual_seed(cfg.seed)
    model = DistributedDataParallel(WindowLM(len(vocab), cfg.context, cfg.model))
    optim = getattr(torch.optim, cfg.optimizer.name)(model.parameters(), lr=cfg.optimizer.lr)
    for x, y in windows(vocab, cfg, rank):
        loss = nn.functional.cross_entropy(model(x), y)
        optim.zero_grad()
        loss.backward()
        optim.step()
    print(f"rank {rank}: last local loss {loss.item():.3f}", flush=True)
    dist.barrier()
    if rank == 0:
        shutil.rmtree(folder)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train(DEFAULTS)
    dist.destroy_process_group()
