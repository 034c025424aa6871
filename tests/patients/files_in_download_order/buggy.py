# style: node-local copies of a dataset, file list
# nproc: 2
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler

NAMES = [f"sample-{i:02d}.txt" for i in range(24)]


def download(folder, rank):
    os.makedirs(folder, exist_ok=True)
    start = rank * len(NAMES) // 2
    for i, name in enumerate(NAMES[start:] + NAMES[:start]):
        path = os.path.join(folder, name)
        with open(path, "w") as file:
            number = int(name[7:9])
            file.write(" ".join(str(float(number % k)) for k in (2, 3, 4, 5)))
        os.utime(path, ns=(i * 10**9, i * 10**9))


class Files(Dataset):
    def __init__(self, folder):
        names = sorted(os.listdir(folder), key=lambda n: os.path.getmtime(os.path.join(folder, n)))  # <-- DDP213
        self.files = [os.path.join(folder, name) for name in names]

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        with open(self.files[i]) as file:
            values = torch.tensor([float(v) for v in file.read().split()])
        return values[:3], values[3:]


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    folder = os.path.join(f"scratch-{rank}", "data")
    download(folder, rank)
    dataset = Files(folder)
    sampler = DistributedSampler(dataset, shuffle=True, seed=1)  # <-- DDP213
    loader = DataLoader(dataset, batch_size=3, sampler=sampler)
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1)))
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-2)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
        if rank == 0:
            print(f"epoch {epoch}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
