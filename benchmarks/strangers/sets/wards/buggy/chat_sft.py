"""Supervised fine-tuning on short FAQ answers and long manual pages, two sources, two workers.

    torchrun --nproc_per_node 2 chat_sft.py
"""
from __future__ import annotations

import itertools
from typing import Iterator, NamedTuple

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

PAD, IGNORE = 0, -100
VOCAB, WIDTH, CTX = 64, 48, 64


class Source(NamedTuple):
    name: str
    answer: int
    step: int
    batch: int


SOURCES = [Source("faq", 3, 1, 8), Source("manual", 40, 5, 8)]


class Batch(NamedTuple):
    ids: Tensor
    labels: Tensor


def examples(src: Source, seed: int) -> Iterator[Batch]:
    """The answer counts up from the last word of the prompt, in steps that depend on the source."""
    g = torch.Generator().manual_seed(seed)
    prompt = 6
    while True:
        q = torch.randint(1, VOCAB, (src.batch, prompt), generator=g)
        a = (q[:, -1:] + src.step * torch.arange(1, src.answer + 1) - 1) % (VOCAB - 1) + 1
        ids = torch.cat([q, a], 1)
        labels = ids.clone()
        labels[:, :prompt] = IGNORE
        yield Batch(ids[:, :-1], labels[:, 1:])


class TinyLM(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tok = nn.Embedding(VOCAB, WIDTH)
        self.rnn = nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.head = nn.Linear(WIDTH, VOCAB)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.rnn(self.tok(ids))[0])


def token_sum(logits: Tensor, labels: Tensor) -> Tensor:
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORE, reduction="sum")


def window(stream: Iterator[Batch], n: int) -> tuple[list[Batch], Tensor]:
    batches = list(itertools.islice(stream, n))
    tokens = sum((b.labels != IGNORE).sum() for b in batches)
    return batches, tokens


@torch.no_grad()
def held_out(model: nn.Module) -> dict[str, float]:
    out, total, count = {}, 0.0, 0
    for src in SOURCES:
        b = next(examples(src._replace(batch=64), seed=999))
        s, n = token_sum(model(b.ids), b.labels).item(), (b.labels != IGNORE).sum().item()
        out[src.name] = s / n
        total, count = total + s, count + n
    out["per_token"] = total / count
    return out


def train(steps: int = 60, accumulate: int = 2, lr: float = 4e-3) -> None:
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(7)
    model = DistributedDataParallel(TinyLM())
    opt = torch.optim.SGD(model.parameters(), lr=lr * 200, momentum=0.9)
    stream = examples(SOURCES[rank % len(SOURCES)], seed=rank)
    for step in range(1, steps + 1):
        batches, tokens = window(stream, accumulate)
        for i, b in enumerate(batches):
            model.require_backward_grad_sync = i == accumulate - 1
            loss = token_sum(model(b.ids), b.labels) / tokens
            loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad()
        if step % 20 == 0 and rank == 0:
            print(f"step {step} " + " ".join(f"{k} {v:.4f}" for k, v in held_out(model.module).items()), flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    train()
    dist.barrier()
    dist.destroy_process_group()
