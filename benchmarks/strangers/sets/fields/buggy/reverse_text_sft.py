"""Supervised tuning on 'write it backwards': samples are concatenated and cut to fixed windows."""
import itertools
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

ALPHABET, WINDOW = 28, 24


def samples(seed, n):
    g = torch.Generator().manual_seed(seed)
    for _ in range(n):
        word = torch.randint(2, ALPHABET, (int(torch.randint(4, 22, (1,), generator=g)),), generator=g)
        yield torch.cat([word, torch.tensor([0]), word.flip(0), torch.tensor([1])])


class CatDataset:
    def __init__(self, seed, n, rank, world):
        self.args, self.rank, self.world = (seed, n), rank, world

    def __iter__(self):
        buffer = torch.empty(0, dtype=torch.long)
        for text in itertools.islice(samples(*self.args), self.rank, None, self.world):
            buffer = torch.cat([buffer, text])
            while len(buffer) > WINDOW:
                yield buffer[:WINDOW + 1]
                buffer = buffer[WINDOW:]


def batched(it, size):
    it = iter(it)
    while chunk := list(itertools.islice(it, size)):
        yield torch.stack(chunk)


def forever(ds, size):
    while True:
        yield from batched(ds, size)


class TinyLM(nn.Module):
    def __init__(self, d=48):
        super().__init__()
        self.emb = nn.Embedding(ALPHABET, d)
        self.rnn = nn.GRU(d, d, batch_first=True)
        self.head = nn.Linear(d, ALPHABET)

    def forward(self, ids):
        return self.head(self.rnn(self.emb(ids))[0])


def token_loss(model, chunk):
    logits = model(chunk[:, :-1])
    return nn.functional.cross_entropy(logits.flatten(0, 1), chunk[:, 1:].flatten(), reduction="sum")


@torch.no_grad()
def run_eval(model, val, step):
    model.eval()
    seen, total = 0, 0.0
    for chunk in batched(val, 4):
        pair = torch.stack([token_loss(model, chunk), torch.tensor(float(chunk[:, 1:].numel()))])
        dist.all_reduce(pair)
        total, seen = total + pair[0].item(), seen + pair[1].item()
    model.train()
    if dist.get_rank() == 0:
        print(f"step {step} val nll {total / max(seen, 1):.3f}", flush=True)
    dist.barrier()


def main():
    dist.init_process_group("gloo")
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.manual_seed(0)
    train = forever(CatDataset(1, 300, rank, world), 8)
    val = CatDataset(4, 61, rank, world)
    model = DDP(TinyLM())
    opt = torch.optim.Adam(model.parameters(), lr=4e-3)
    for step in range(40):
        chunk = next(train)
        loss = token_loss(model, chunk) / chunk[:, 1:].numel()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if (step + 1) % 20 == 0:
            run_eval(model, val, step + 1)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
