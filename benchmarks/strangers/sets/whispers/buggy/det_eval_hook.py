"""Runner with hooks; evaluation runs on all processes, the checkpoint is written by the first one."""
import argparse

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel


def get_dist_info():
    return dist.get_rank(), dist.get_world_size()


def scenes(n, shift, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 3, (n,), generator=g)
    centers = torch.tensor([[2.0, 0, 0], [0, 2.0, 0], [0, 0, 2.0]])
    x = torch.randn(n, 3, generator=g) + centers[y] + shift
    return torch.cat([x, torch.randn(n, 3, generator=g)], 1), y


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 3))

    def forward(self, x):
        return self.net(x)


class EvalHook:
    def __init__(self, data, interval):
        self.data, self.interval = data, interval

    def before_eval(self, model):
        model.eval()

    @torch.no_grad()
    def after_train_epoch(self, runner):
        if (runner.epoch + 1) % self.interval:
            return
        self.before_eval(runner.model)
        x, y = self.data
        hits = torch.tensor([(runner.model.module(x).argmax(1) == y).sum().item(), len(y)], dtype=torch.float64)
        dist.all_reduce(hits)
        runner.log(f"epoch {runner.epoch + 1} accuracy {(hits[0] / hits[1]).item():.4f}")
        runner.model.train()


class CheckpointHook:
    def after_train_epoch(self, runner):
        if runner.rank == 0:
            torch.save(runner.model.module.state_dict(), f"epoch_{runner.epoch + 1}.pth")


class Runner:
    def __init__(self, model, optimizer, hooks):
        self.model, self.optimizer, self.hooks = model, optimizer, hooks
        self.rank, self.world_size = get_dist_info()
        self.epoch = 0

    def log(self, text):
        if self.rank == 0:
            print(text, flush=True)

    def run(self, data, epochs, batch):
        for self.epoch in range(epochs):
            order = torch.randperm(len(data[0]), generator=torch.Generator().manual_seed(self.epoch))
            for idx in order.split(batch):
                loss = nn.functional.cross_entropy(self.model(data[0][idx]), data[1][idx])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            for hook in self.hooks:
                hook.after_train_epoch(self)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--batch", type=int, default=16)
    args = p.parse_args()
    dist.init_process_group("gloo")
    rank, world = get_dist_info()
    torch.manual_seed(0)
    model = DistributedDataParallel(Classifier(), broadcast_buffers=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    shift = 2.0 * rank / (world - 1) - 1.0      # each process holds the images of one site
    hooks = [EvalHook(scenes(200, shift, 50 + rank), 2), CheckpointHook()]
    Runner(model, optimizer, hooks).run(scenes(256, shift, rank), args.epochs, args.batch)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
