# style: one file a sample, cache under a file lock, logs per rank, two passes an epoch
# nproc: 2
import fcntl
import json
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Samples(Dataset):
    def __init__(self, folder, mean):
        self.files = sorted(os.path.join(folder, name) for name in os.listdir(folder))
        self.mean = mean

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        return torch.load(self.files[i]) - self.mean


def write_samples(folder, count):
    os.makedirs(folder)
    for i in range(count):
        torch.save(torch.tensor([i % 3, i % 5, i % 7], dtype=torch.float32), f"{folder}/{i:03d}.pt")


def cached_mean(folder, cache):
    with open(cache + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(cache):
            files = sorted(os.listdir(folder))
            samples = torch.stack([torch.load(os.path.join(folder, name)) for name in files])
            torch.save(samples.mean(dim=0), cache + ".part")
            os.replace(cache + ".part", cache)
    return torch.load(cache)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    if rank == 0:
        write_samples("samples", 48)
    dist.barrier()
    os.makedirs("logs", exist_ok=True)
    dataset = Samples("samples", cached_mean("samples", "mean.pt"))
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=4, sampler=sampler)
    torch.manual_seed(0)
    encoder, decoder = DDP(nn.Linear(3, 2)), DDP(nn.Linear(2, 3))
    first = torch.optim.SGD(encoder.parameters(), lr=0.05)
    second = torch.optim.SGD(decoder.parameters(), lr=0.05)
    history = []
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for optimizer, module in ((first, decoder), (second, encoder)):
            for x in loader:
                loss = nn.functional.mse_loss(decoder(encoder(x)), x)
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                module.zero_grad()
                history.append(loss.item())
        with open(f"logs/rank-{rank}.json", "w") as file:
            json.dump(history, file)
        torch.save({"history": history}, f"logs/rank-{rank}.pt")
    dist.barrier()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
