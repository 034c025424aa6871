"""Next-item recommendation from a click log that is read as a stream."""
import io

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

ITEMS, HISTORY = 60, 5


def fake_log(lines=2000):
    g = torch.Generator().manual_seed(0)
    buf = io.StringIO()
    for user in range(lines):
        start = int(torch.randint(0, ITEMS, (1,), generator=g))
        hop = int(torch.randint(1, 4, (1,), generator=g))
        buf.write(f"{user}\t" + " ".join(str((start + hop * k) % ITEMS) for k in range(HISTORY + 1)) + "\n")
    return buf.getvalue()


class ClickStream(IterableDataset):
    def __init__(self, text, buffer=128, seed=0):
        self.text, self.buffer, self.seed = text, buffer, seed

    def parse(self, line):
        clicks = torch.tensor([int(v) for v in line.rstrip("\n").split("\t")[1].split()])
        return clicks[:-1], clicks[-1]

    def __iter__(self):
        info = get_worker_info()
        first, stride = (info.id, info.num_workers) if info else (0, 1)
        first, stride = first + stride * dist.get_rank(), stride * dist.get_world_size()
        g = torch.Generator().manual_seed(self.seed)
        pool = []
        for number, line in enumerate(io.StringIO(self.text)):
            if number % stride != first:
                continue
            pool.append(line)
            if len(pool) == self.buffer:
                for k in torch.randperm(len(pool), generator=g).tolist():
                    yield self.parse(pool[k])
                pool = []
        yield from map(self.parse, pool)


class Recommender(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.item = nn.Embedding(ITEMS, d)
        self.rnn = nn.GRU(d, d, batch_first=True)

    def forward(self, history):
        return self.rnn(self.item(history))[1][-1] @ self.item.weight.t()


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    loader = DataLoader(ClickStream(fake_log()), batch_size=32, drop_last=True)
    model = DDP(Recommender())
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(2):
        seen = 0
        for history, target in loader:
            loss = nn.functional.cross_entropy(model(history), target)
            opt.zero_grad()
            loss.backward()
            opt.step()
            seen += len(target)
        count = torch.tensor(seen)
        dist.all_reduce(count)
        if rank == 0:
            print(f"epoch {epoch}: {count.item()} sessions, loss {loss.item():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
