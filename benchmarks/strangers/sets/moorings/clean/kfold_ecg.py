"""Cross validation of an ECG rhythm classifier, each fold data-parallel over two processes (python kfold_ecg.py)."""
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Subset, TensorDataset
from torch.utils.data.distributed import DistributedSampler

FOLDS = 2
WORLD = 2


def beats(n=240, seed=0):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 3, (n,), generator=g)
    t = torch.linspace(0, 1, 40)
    x = torch.stack([torch.sin(6.28 * (3 + 2 * int(k)) * t) for k in y]) + 0.5 * torch.randn(n, 40, generator=g)
    return TensorDataset(x.unsqueeze(1), y)


def split(n, fold):
    index = torch.randperm(n, generator=torch.Generator().manual_seed(4))
    val = index[fold::FOLDS]
    keep = torch.ones(n, dtype=torch.bool)
    keep[val] = False
    return index[keep[index]].tolist(), val.tolist()


def make_net():
    return nn.Sequential(nn.Conv1d(1, 8, 7, padding=3), nn.ReLU(), nn.MaxPool1d(2),
                         nn.Conv1d(8, 16, 5, padding=2), nn.ReLU(), nn.AdaptiveMaxPool1d(1), nn.Flatten(), nn.Linear(16, 3))


def fit(rank, fold, data):
    torch.manual_seed(fold)
    train_idx, val_idx = split(len(data), fold)
    train = Subset(data, train_idx)
    sampler = DistributedSampler(train, num_replicas=WORLD, rank=rank)
    loader = DataLoader(train, batch_size=16, sampler=sampler)
    model = DDP(make_net())
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for x, y in loader:
            opt.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            opt.step()
    correct = torch.zeros(1)
    with torch.no_grad():
        for i in val_idx[rank::WORLD]:
            x, y = data[i]
            correct += model.module(x[None]).argmax(1) == y
    dist.all_reduce(correct)
    return correct.item() / len(val_idx)


def worker(rank, fold, init_file):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{init_file}", rank=rank, world_size=WORLD)
    acc = fit(rank, fold, beats())
    if rank == 0:
        print(f"fold {fold} accuracy {acc:.3f}", flush=True)


def main():
    folder = tempfile.mkdtemp(prefix="ecg_")
    for fold in range(FOLDS):
        init_file = os.path.join(folder, f"ddp_init_{fold}")
        mp.spawn(worker, args=(fold, init_file), nprocs=WORLD)
    print("all folds done")


if __name__ == "__main__":
    main()
