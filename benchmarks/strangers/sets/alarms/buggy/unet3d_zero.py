"""Small 3D segmentation net, sharded optimizer, handlers fired by a minimal engine."""
import argparse
from collections import defaultdict

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP


class Engine:
    def __init__(self, update):
        self.update, self.handlers = update, defaultdict(list)
        self.epoch = 0

    def on(self, event, fn):
        self.handlers[event].append(fn)

    def fire(self, event):
        for fn in self.handlers[event]:
            fn(self)

    def run(self, batches, epochs):
        for self.epoch in range(1, epochs + 1):
            for b in batches:
                self.output = self.update(b)
            self.fire("epoch_completed")
        self.fire("completed")


class CheckpointSaver:
    def __init__(self, objects, every=1):
        self.objects, self.every = objects, every

    def attach(self, engine):
        engine.on("epoch_completed", self)

    def __call__(self, engine):
        if engine.epoch % self.every:
            return
        opt = self.objects["optimizer"]
        if isinstance(opt, ZeroRedundancyOptimizer):
            opt.consolidate_state_dict(to=0)
        state = {k: v.state_dict() for k, v in self.objects.items()}
        torch.save(state, f"epoch{engine.epoch}.pt")


def volumes(rank, n):
    g = torch.Generator().manual_seed(rank)
    out = []
    for _ in range(n):
        v = torch.randn(2, 1, 6, 6, 6, generator=g)
        out.append((v, (v > 0.3).float()))
    return out


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=2)
    ap.add_argument("--lr", type=float, default=1e-2)
    args = ap.parse_args()
    dist.init_process_group(backend="gloo")
    rank = dist.get_rank()
    torch.manual_seed(5)
    net = DDP(nn.Sequential(nn.Conv3d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv3d(4, 1, 1)))
    opt = ZeroRedundancyOptimizer(net.parameters(), optimizer_class=torch.optim.Adam, lr=args.lr)
    bce = nn.BCEWithLogitsLoss()

    def update(batch):
        x, y = batch
        loss = bce(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item()

    trainer = Engine(update)
    if rank == 0:
        CheckpointSaver({"model": net.module, "optimizer": opt}).attach(trainer)
        trainer.on("epoch_completed", lambda e: print(f"epoch {e.epoch} loss {e.output:.4f}", flush=True))
    trainer.on("completed", lambda e: dist.barrier())
    trainer.run(volumes(rank, 5), args.epochs)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
