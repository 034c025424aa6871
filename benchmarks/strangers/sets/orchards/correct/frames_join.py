# Phone frame classifier; every process owns the recordings of its own speakers,
# so the amounts of data differ. Uses the Join context manager.
import os
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.algorithms.join import Join
from torch.utils.data import DataLoader, TensorDataset

N_PHONES = 8
DIM = 13


def speakers_of(rank, world, total=9):
    return [s for s in range(total) if s % world == rank]


def load_speaker(s):
    g = torch.Generator().manual_seed(1000 + s)
    proto = torch.randn(N_PHONES, DIM, generator=torch.Generator().manual_seed(1)) * 1.5
    n = 150 + 37 * s
    y = torch.randint(N_PHONES, (n,), generator=g)
    x = proto[y] + torch.randn(n, DIM, generator=g) + 0.2 * s / 9
    return x, y


class FrameNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.LayerNorm(DIM), nn.Linear(DIM, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, N_PHONES)
        )

    def forward(self, x):
        return self.layers(x)


def train_epoch(model, loader, opt):
    model.train()
    n_steps = 0
    with Join([model]):
        for x, y in loader:
            opt.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            opt.step()
            n_steps += 1
    return n_steps


@torch.no_grad()
def frame_error(model, loader):
    model.eval()
    wrong = torch.zeros(2)
    for x, y in loader:
        wrong[0] += (model.module(x).argmax(1) != y).sum()
        wrong[1] += len(y)
    dist.all_reduce(wrong)
    return (wrong[0] / wrong[1]).item()


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    xs, ys = zip(*(load_speaker(s) for s in speakers_of(rank, world)))
    ds = TensorDataset(torch.cat(xs), torch.cat(ys))
    cut = int(0.85 * len(ds))
    train = TensorDataset(*ds[:cut])
    dev = TensorDataset(*ds[cut:])
    torch.manual_seed(50 + rank)
    train_dl = DataLoader(train, 32, shuffle=True, drop_last=True)
    dev_dl = DataLoader(dev, 64)
    model = nn.parallel.DistributedDataParallel(FrameNet())
    opt = torch.optim.SGD(model.parameters(), lr=0.2)
    for epoch in range(4):
        steps = train_epoch(model, train_dl, opt)
        fer = frame_error(model, dev_dl)
        print(f"rank {rank}: epoch {epoch} {steps} own steps, dev error {fer:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
