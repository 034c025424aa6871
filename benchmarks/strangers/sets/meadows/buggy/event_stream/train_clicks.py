import argparse
import os
import sys
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from click_model import ClickModel
from streams import ShardStream, write_shards


class Tally:
    def __init__(self):
        self.events = 0
        self.loss = 0.0

    def add(self, loss, n):
        self.events += n
        self.loss += loss * n

    def world_mean(self):
        t = torch.tensor([self.loss, float(self.events)], dtype=torch.float64)
        dist.all_reduce(t)
        return (t[0] / t[1]).item(), int(t[1])


def prepare(rank, args):
    box = [None]
    if rank == 0:
        box[0] = os.path.join(tempfile.mkdtemp(), "clicks")
        write_shards(box[0], args.shards, args.events)
    dist.broadcast_object_list(box, src=0)
    return box[0]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--shards", type=int, default=16)
    ap.add_argument("--events", type=int, default=40)
    ap.add_argument("--workers", type=int, default=2)
    ap.add_argument("--batch", type=int, default=20)
    ap.add_argument("--epochs", type=int, default=2)
    args = ap.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(3)
    folder = prepare(rank, args)
    loader = DataLoader(ShardStream(folder), args.batch, num_workers=args.workers)
    model = DDP(ClickModel())
    opt = torch.optim.Adagrad(model.parameters(), lr=0.05)
    for epoch in range(args.epochs):
        tally = Tally()
        for _, x, y in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            tally.add(loss.item(), len(y))
        mean, events = tally.world_mean()
        if rank == 0:
            print(f"epoch {epoch} loss {mean:.4f} on {events} events", flush=True)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
