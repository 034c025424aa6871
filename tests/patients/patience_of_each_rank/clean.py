# style: EarlyStopping class, Trainer-like loop
# nproc: 2
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class EarlyStopping:
    def __init__(self, patience=2, min_delta=1e-4):
        self.patience, self.min_delta = patience, min_delta
        self.best = float("inf")
        self.bad_epochs = 0

    def step(self, value):
        if value < self.best - self.min_delta:
            self.best, self.bad_epochs = value, 0
        else:
            self.bad_epochs += 1
        return self.bad_epochs >= self.patience


def data(rank, seed, count=32):
    generator = torch.Generator().manual_seed(10 * seed + rank)
    x = torch.randn(count, 7, generator=generator)
    noise = torch.randn(count, 1, generator=generator)
    return x, x[:, :1] + noise * (0.1 + 2.0 * rank)


def train_epoch(model, optimizer, x, y):
    model.train()
    for part_x, part_y in zip(x.split(8), y.split(8)):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(part_x), part_y).backward()
        optimizer.step()


@torch.no_grad()
def validate(model, x, y):
    model.eval()
    return nn.functional.mse_loss(model.module(x), y).item()


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(7, 16), nn.ReLU(), nn.Linear(16, 1)))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    stopper = EarlyStopping()
    train_x, train_y = data(rank, seed=1)
    val_x, val_y = data(rank, seed=2)
    for epoch in range(60):
        train_epoch(model, optimizer, train_x, train_y)
        val_loss = validate(model, val_x, val_y)
        mean_loss = torch.tensor(val_loss)
        dist.all_reduce(mean_loss)
        if stopper.step(mean_loss.item()):
            print(f"rank {rank}: stopping after epoch {epoch}")
            break
    dist.barrier()
    del model, optimizer
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
