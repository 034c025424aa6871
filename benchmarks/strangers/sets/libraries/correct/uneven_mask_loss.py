"""Masked-token training where a worker may have nothing to predict, and the plan ends by agreement."""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


class Encoder(nn.Module):
    def __init__(self, vocab=24, dim=20):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.mix = nn.GRU(dim, dim, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * dim, vocab)

    def forward(self, ids):
        return self.out(self.mix(self.tok(ids))[0])


def documents(rank):
    """Shards have different lengths: 9 batches here, 13 there."""
    g = torch.Generator().manual_seed(12 + rank)
    for b in range(9 + 4 * rank):
        ids = (torch.randint(0, 24, (4, 1), generator=g) + torch.arange(10)) % 23 + 1
        p = 0.0 if (rank + b) % 5 == 0 else 0.3
        yield ids, torch.rand(ids.shape, generator=g) < p


def in_step(source):
    """Yields as long as every worker has a batch left."""
    it = iter(source)
    while True:
        item = next(it, None)
        ready = torch.tensor(int(item is not None))
        dist.all_reduce(ready, op=dist.ReduceOp.MIN)
        if not ready:
            return
        yield item


def masked_loss(model, ids, mask):
    logits = model(ids.masked_fill(mask, 0))
    wanted = mask.sum().float()
    dist.all_reduce(wanted)
    if mask.any():
        local = F.cross_entropy(logits[mask], ids[mask], reduction="sum")
    else:
        local = logits.sum() * 0.0
    return local * dist.get_world_size() / wanted.clamp(min=1)


def train():
    rank = dist.get_rank()
    torch.manual_seed(1)
    model = DDP(Encoder())
    opt = torch.optim.AdamW(model.parameters(), lr=5e-3)
    steps = 0
    for ids, mask in in_step(documents(rank)):
        loss = masked_loss(model, ids, mask)
        opt.zero_grad()
        loss.backward()
        opt.step()
        steps += 1
        if not mask.any():
            continue
        shown = loss.item()
    print(f"rank {rank}: {steps} steps, last own share {shown:.3f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train()
    dist.destroy_process_group()
