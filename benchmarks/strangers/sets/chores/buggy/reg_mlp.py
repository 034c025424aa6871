import argparse
import copy

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class EarlyStopper:
    def __init__(self, patience=2, min_delta=1e-3):
        self.patience = patience
        self.min_delta = min_delta
        self.best = float("inf")
        self.bad_epochs = 0
        self.best_state = None

    def step(self, value, model):
        if value < self.best - self.min_delta:
            self.best = value
            self.bad_epochs = 0
            self.best_state = copy.deepcopy(model.state_dict())
        else:
            self.bad_epochs += 1
        return self.bad_epochs >= self.patience


def make_data(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 10, generator=g)
    y = x[:, :3].sum(1, keepdim=True) + 0.5 * torch.randn(n, 1, generator=g)
    return TensorDataset(x, y)


@torch.no_grad()
def evaluate(net, loader):
    net.eval()
    total, count = 0.0, 0
    for x, y in loader:
        total += nn.functional.mse_loss(net(x), y, reduction="sum").item()
        count += y.numel()
    net.train()
    return total / count


def fit(args):
    dist.init_process_group(backend="gloo")
    rank = dist.get_rank()
    is_main = rank == 0
    torch.manual_seed(args.seed)

    train_set = make_data(256, seed=1)
    sampler = DistributedSampler(train_set, shuffle=True)
    train_loader = DataLoader(train_set, batch_size=16, sampler=sampler)
    val_loader = DataLoader(make_data(64, seed=2), batch_size=32)

    net = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 1))
    model = DistributedDataParallel(net)
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    stopper = EarlyStopper(patience=args.patience)

    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for x, y in train_loader:
            opt.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            opt.step()

        if is_main:
            val_loss = evaluate(model.module, val_loader)
            print(f"[{epoch}] val mse {val_loss:.4f} best {stopper.best:.4f}", flush=True)
            if stopper.step(val_loss, model.module):
                print(f"no improvement for {args.patience} epochs, stopping", flush=True)
                break

    dist.barrier()
    if is_main:
        model.module.load_state_dict(stopper.best_state)
        print(f"final val mse {evaluate(model.module, val_loader):.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=40)
    p.add_argument("--lr", type=float, default=2e-2)
    p.add_argument("--patience", type=int, default=2)
    p.add_argument("--seed", type=int, default=3)
    fit(p.parse_args())
