"""Small causal LM on synthetic clauses, documents packed into fixed windows."""
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


@dataclass
class Config:
    window: int = 64
    micro_batch: int = 2
    grad_accum: int = 2
    epochs: int = 1
    max_steps: int = 500
    lr: float = 2e-3
    vocab: int = 50
    documents: int = 400


class ClauseDocuments:
    """Documents are dealt round robin, an epoch is one pass over them."""

    def __init__(self, cfg, rank, world):
        self.cfg, self.rank, self.world = cfg, rank, world

    def __iter__(self):
        g = torch.Generator().manual_seed(99)
        for epoch in range(self.cfg.epochs):
            for n in range(self.cfg.documents):
                length = int(torch.randint(10, 90, (1,), generator=g))
                start = int(torch.randint(0, self.cfg.vocab, (1,), generator=g))
                if n % self.world == self.rank:
                    yield (start + 3 * torch.arange(length)) % self.cfg.vocab


class PackedWindows:
    def __init__(self, documents, window, batch):
        self.documents, self.window, self.batch = documents, window, batch

    def __iter__(self):
        buffer, rows = torch.empty(0, dtype=torch.long), []
        for doc in self.documents:
            buffer = torch.cat([buffer, doc])
            while len(buffer) > self.window:
                rows.append(buffer[:self.window + 1])
                buffer = buffer[self.window:]
                if len(rows) == self.batch:
                    yield torch.stack(rows)
                    rows = []


class TinyLM(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.tok = nn.Embedding(cfg.vocab, 32)
        self.rnn = nn.GRU(32, 48, batch_first=True)
        self.head = nn.Linear(48, cfg.vocab)

    def forward(self, ids):
        return self.head(self.rnn(self.tok(ids))[0])


def train(cfg):
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DDP(TinyLM(cfg))
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    batches = iter(PackedWindows(ClauseDocuments(cfg, rank, world), cfg.window, cfg.micro_batch))
    step, exhausted = 0, False
    while step < cfg.max_steps:
        opt.zero_grad()
        for micro in range(cfg.grad_accum):
            try:
                ids = next(batches)
            except StopIteration:
                exhausted = True
                break
            logits = model(ids[:, :-1])
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
            (loss / cfg.grad_accum).backward()
        if exhausted:
            break
        opt.step()
        step += 1
        if rank == 0 and step % 10 == 0:
            print(f"step {step} loss {loss.item():.3f}", flush=True)
    dist.barrier()
    if rank == 0:
        print(f"done after {step} steps", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train(Config())
    dist.destroy_process_group()
