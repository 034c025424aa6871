"""Next-item recommendation from a click log that is streamed from disk."""
import os
import shutil
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


@dataclass
class Opts:
    folder: str = "clicks"
    users: int = 400
    items: int = 120
    clicks: int = 24000
    batch: int = 64
    workers: int = 1
    dim: int = 16
    lr: float = 5e-3


def write_log(o: Opts):
    shutil.rmtree(o.folder, ignore_errors=True)
    os.makedirs(o.folder)
    g = torch.Generator().manual_seed(0)
    u = torch.randint(o.users, (o.clicks,), generator=g)
    taste = (u * 7) % o.items
    i = (taste + torch.randint(0, 6, (o.clicks,), generator=g)) % o.items
    with open(os.path.join(o.folder, "clicks.tsv"), "w") as fh:
        for a, b in zip(u.tolist(), i.tolist()):
            fh.write(f"{a}\t{b}\n")


def reader_slot(rank, world):
    """(index, count) of this reader among all readers of the job."""
    info = get_worker_info()
    wid, wnum = (info.id, info.num_workers) if info else (0, 1)
    return rank * wnum + wid, world * wnum


class ClickStream(IterableDataset):
    def __init__(self, folder):
        super().__init__()
        self.path = os.path.join(folder, "clicks.tsv")
        self.rank, self.world = dist.get_rank(), dist.get_world_size()

    def __iter__(self):
        slot, slots = reader_slot(self.rank, self.world)
        with open(self.path) as fh:
            for n, line in enumerate(fh):
                if n % slots == slot:
                    user, item = line.split("\t")
                    yield int(user), int(item)


class TwoTower(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.u = nn.Embedding(o.users, o.dim)
        self.i = nn.Embedding(o.items, o.dim)
        self.b = nn.Parameter(torch.zeros(o.items))

    def forward(self, users):
        return self.u(users) @ self.i.weight.t() + self.b


def build_loader(o):
    # the log reader is not fork-safe in production, hence spawn
    return DataLoader(
        ClickStream(o.folder),
        batch_size=o.batch,
        num_workers=o.workers,
        multiprocessing_context="spawn" if o.workers else None,
        drop_last=True,
    )


def main():
    o = Opts()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    if rank == 0:
        write_log(o)
    dist.barrier()
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(TwoTower(o))
    opt = torch.optim.Adagrad(model.parameters(), lr=o.lr * 10)
    loss_sum, n = 0.0, 0
    for step, (users, items) in enumerate(build_loader(o)):
        loss = nn.functional.cross_entropy(model(users), items)
        opt.zero_grad()
        loss.backward()
        opt.step()
        loss_sum, n = loss_sum + loss.item() * len(items), n + len(items)
        if rank == 0 and step % 100 == 0:
            print(f"step {step} loss {loss.item():.3f}", flush=True)
    tot = torch.tensor([loss_sum, n], dtype=torch.float64)
    dist.all_reduce(tot)
    if rank == 0:
        print(f"one pass over the log: {int(tot[1])} clicks, mean loss {tot[0] / tot[1]:.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
