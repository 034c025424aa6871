"""Supervised fine-tuning: only the answer tokens count, prompts are masked with -100."""
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

IGNORE = -100


@dataclass
class DataArgs:
    samples: int = 96
    vocab: int = 40
    length: int = 32
    seed: int = 13


@dataclass
class Args:
    data: DataArgs = field(default_factory=DataArgs)
    per_device_batch: int = 2
    lr: float = 2e-3
    epochs: int = 2
    max_grad_norm: float = 1.0


class Conversations(Dataset):
    def __init__(self, a):
        g = torch.Generator().manual_seed(a.seed)
        self.ids = torch.randint(0, a.vocab, (a.samples, a.length), generator=g)
        answer = (1 + (a.length - 2) * torch.rand(a.samples, generator=g) ** 3).long()
        pos = torch.arange(a.length)
        self.labels = torch.where(pos[None] >= a.length - answer[:, None], self.ids, IGNORE)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.labels[i]}


class TinyGPT(nn.Module):
    def __init__(self, vocab, dim=16, length=32):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, dim), nn.Embedding(length, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, vocab)

    def forward(self, input_ids):
        x = self.tok(input_ids) + self.pos(torch.arange(input_ids.shape[1]))
        return self.head(self.rnn(x)[0])


def lm_loss(logits, labels):
    shift, target = logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten()
    total = F.cross_entropy(shift, target, ignore_index=IGNORE, reduction="sum")
    count = (target != IGNORE).sum().float()
    dist.all_reduce(count)
    return total * dist.get_world_size() / count


def log(step, loss):
    value = loss.detach().clone()
    dist.all_reduce(value)
    if dist.get_rank() == 0:
        print(f"step {step}: loss {value.item() / dist.get_world_size():.4f}", flush=True)


def finetune(args):
    data = Conversations(args.data)
    sampler = DistributedSampler(data, seed=args.data.seed)
    loader = DataLoader(data, batch_size=args.per_device_batch, sampler=sampler)
    torch.manual_seed(args.data.seed)
    model = DistributedDataParallel(TinyGPT(args.data.vocab))
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    step = 0
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for batch in loader:
            loss = lm_loss(model(batch["input_ids"]), batch["labels"])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), args.max_grad_norm)
            optimizer.step()
            step += 1
            if step % 10 == 0:
                log(step, loss)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    finetune(Args())
    dist.destroy_process_group()
