"""Click-through-rate model on an event stream that is read in shards (factorisation machine)."""
import json
import os
import shutil
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

FIELDS, CARD = 4, 30


def write_shards(folder, shards=8, rows=96):
    os.makedirs(folder, exist_ok=True)
    g = torch.Generator().manual_seed(3)
    taste = torch.randn(FIELDS, CARD, generator=g)
    for s in range(shards):
        ids = torch.randint(CARD, (rows, FIELDS), generator=g)
        p = torch.sigmoid(taste.gather(1, ids.t()).sum(0) * 0.8 - 0.5)
        click = (torch.rand(rows, generator=g) < p).long()
        with open(os.path.join(folder, f"part-{s:05d}.jsonl"), "w") as f:
            for i, c in zip(ids.tolist(), click.tolist()):
                f.write(json.dumps({"ids": i, "click": c}) + "\n")


def shuffled(stream, buffer_size, gen):
    buf = []
    for item in stream:
        if len(buf) < buffer_size:
            buf.append(item)
            continue
        k = int(torch.randint(buffer_size, (1,), generator=gen))
        yield buf[k]
        buf[k] = item
    order = torch.randperm(len(buf), generator=gen).tolist()
    yield from (buf[k] for k in order)


class EventStream(IterableDataset):
    def __init__(self, folder, seed, buffer_size=128):
        self.files = sorted(os.path.join(folder, n) for n in os.listdir(folder))
        self.seed, self.buffer_size, self.epoch = seed, buffer_size, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def my_files(self):
        info = get_worker_info()
        if info is None:
            return self.files
        return self.files[info.id::info.num_workers]

    def rows(self):
        for path in self.my_files():
            with open(path) as f:
                for line in f:
                    row = json.loads(line)
                    yield torch.tensor(row["ids"]), float(row["click"])

    def __iter__(self):
        gen = torch.Generator().manual_seed(self.seed + self.epoch)
        return shuffled(self.rows(), self.buffer_size, gen)


class FactorizationMachine(nn.Module):
    def __init__(self, k=6):
        super().__init__()
        self.register_buffer("offset", torch.arange(FIELDS) * CARD)
        self.w = nn.Embedding(FIELDS * CARD, 1)
        self.v = nn.Embedding(FIELDS * CARD, k)
        nn.init.normal_(self.v.weight, std=0.05)
        self.b = nn.Parameter(torch.zeros(1))

    def forward(self, ids):
        ids = ids + self.offset
        v = self.v(ids)
        cross = 0.5 * (v.sum(1).pow(2) - v.pow(2).sum(1)).sum(1)
        return self.b + self.w(ids).sum((1, 2)) + cross


def train(folder, epochs=3):
    torch.manual_seed(0)
    stream = EventStream(folder, seed=11)
    loader = DataLoader(stream, batch_size=32)
    model = DDP(FactorizationMachine())
    opt = torch.optim.Adagrad(model.parameters(), lr=0.1)
    for epoch in range(epochs):
        stream.set_epoch(epoch)
        tally = torch.zeros(2)
        for ids, click in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(model(ids), click.float())
            opt.zero_grad()
            loss.backward()
            opt.step()
            tally += torch.tensor([loss.item() * len(ids), len(ids)])
        dist.all_reduce(tally)
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: logloss {tally[0] / tally[1]:.4f}", flush=True)


def main():
    dist.init_process_group("gloo")
    where = [tempfile.mkdtemp(prefix="ctr_") if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(where, src=0)
    if dist.get_rank() == 0:
        write_shards(where[0])
    dist.barrier()
    train(where[0])
    dist.barrier()
    if dist.get_rank() == 0:
        shutil.rmtree(where[0])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
