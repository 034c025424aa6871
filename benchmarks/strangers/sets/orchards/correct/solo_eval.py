# Only the first process evaluates (the eval set is tiny), the verdict is sent to the rest.
import argparse, os, time
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def get_data():
    x, y = load_digits(return_X_y=True)
    x = torch.tensor(x, dtype=torch.float32).view(-1, 1, 8, 8) / 16
    y = torch.tensor(y)
    te = torch.arange(len(y)) % 5 == 0
    return TensorDataset(x[~te], y[~te]), TensorDataset(x[te], y[te])


def make_model():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.Flatten(),
        nn.Linear(32 * 16, 10),
    )


class Patience:
    def __init__(self, n):
        self.n, self.best, self.bad = n, -1.0, 0

    def __call__(self, acc):
        if acc > self.best:
            self.best, self.bad = acc, 0
        else:
            self.bad += 1
        return self.bad >= self.n


@torch.no_grad()
def evaluate(net, ds):
    net.eval()
    ok = sum((net(x).argmax(1) == y).sum().item() for x, y in DataLoader(ds, 128))
    net.train()
    return ok / len(ds)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", default=12, type=int)
    ap.add_argument("--bs", default=32, type=int)
    ap.add_argument("--lr", default=0.05, type=float)
    ap.add_argument("--patience", default=2, type=int)
    ap.add_argument("--out", default="solo_out")
    a = ap.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(3)
    train, test = get_data()
    sampler = DistributedSampler(train)
    loader = DataLoader(train, a.bs, sampler=sampler, num_workers=0)
    net = nn.parallel.DistributedDataParallel(make_model())
    opt = torch.optim.SGD(net.parameters(), a.lr, momentum=0.9)
    patience = Patience(a.patience)
    stop = torch.zeros(1, dtype=torch.int64)
    for epoch in range(a.epochs):
        sampler.set_epoch(epoch)
        for x, y in loader:
            opt.zero_grad()
            F.cross_entropy(net(x), y).backward()
            opt.step()
        if rank == 0:
            acc = evaluate(net.module, test)
            if acc > patience.best:
                os.makedirs(a.out, exist_ok=True)
                torch.save(net.module.state_dict(), os.path.join(a.out, "best.pt"))
            stop.fill_(int(patience(acc)))
            print(f"epoch {epoch} acc {acc:.4f} best {patience.best:.4f}", flush=True)
        dist.broadcast(stop, src=0)
        if stop.item():
            break
    print(f"rank {rank} left after epoch {epoch}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
