"""Trains in two sittings. Each rank keeps its own data cursor on disk; the model is written by rank 0."""
import os
import pathlib
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel


class Cursor:
    """Position and generator of this rank's stream."""

    def __init__(self, rank):
        self.gen = torch.Generator().manual_seed(900 + rank)
        self.taken = 0

    def batch(self, n=16):
        self.taken += n
        x = torch.randn(n, 6, generator=self.gen)
        return x, (x.sin().sum(1) > 0).float()

    def state_dict(self):
        return {"gen": self.gen.get_state(), "taken": self.taken}

    def load_state_dict(self, d):
        self.gen.set_state(d["gen"])
        self.taken = d["taken"]


class Store:
    def __init__(self, root, rank):
        self.root, self.rank = root, rank

    def write(self, name, obj):
        tmp = self.root / f".{name}.{os.getpid()}"
        torch.save(obj, tmp)
        os.replace(tmp, self.root / name)

    def save(self, step, common, own):
        self.write(f"cursor_{self.rank}.pt", {"step": step, **own})
        dist.barrier()
        if self.rank == 0:
            self.write("common.pt", {"step": step, **common})
        dist.barrier()

    def latest(self):
        found = [None]
        if self.rank == 0 and (self.root / "common.pt").exists():
            found[0] = torch.load(self.root / "common.pt")
        dist.broadcast_object_list(found, src=0)
        if found[0] is None:
            return None
        own = torch.load(self.root / f"cursor_{self.rank}.pt")
        assert own["step"] == found[0]["step"]
        return found[0], own


def sitting(store, rank, until):
    torch.manual_seed(rank)
    net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
    model = DistributedDataParallel(net)
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    cursor, step = Cursor(rank), 0
    previous = store.latest()
    if previous:
        common, own = previous
        net.load_state_dict(common["net"])
        opt.load_state_dict(common["opt"])
        cursor.load_state_dict(own["cursor"])
        step = common["step"]
    while step < until:
        x, y = cursor.batch()
        loss = nn.functional.binary_cross_entropy_with_logits(model(x).squeeze(1), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1
    store.save(step, {"net": net.state_dict(), "opt": opt.state_dict()}, {"cursor": cursor.state_dict()})
    if rank == 0:
        print(f"up to step {step}: loss {loss.item():.4f}, {cursor.taken} samples here", flush=True)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    where = [tempfile.mkdtemp(prefix="run_") if rank == 0 else None]
    dist.broadcast_object_list(where)
    store = Store(pathlib.Path(where[0]), rank)
    for until in (20, 40):
        sitting(store, rank, until)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
