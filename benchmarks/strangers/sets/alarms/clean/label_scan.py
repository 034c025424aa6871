"""Detection training; label files are scanned once by the first process, the others use the cache."""
import contextlib
import datetime
import hashlib
import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

LOCAL_RANK = int(os.getenv("LOCAL_RANK", -1))
RANK = int(os.getenv("RANK", -1))
TIMEOUT = float(os.getenv("DIST_TIMEOUT", 5400))


@contextlib.contextmanager
def torch_distributed_zero_first(local_rank):
    if local_rank not in (-1, 0):
        dist.barrier()
    yield
    if local_rank == 0:
        dist.barrier()


class LoadImagesAndLabels(torch.utils.data.Dataset):
    cache_path = "labels.cache"

    def __init__(self, n=64):
        self.n = n
        if os.path.exists(self.cache_path):
            cache = torch.load(self.cache_path)
        else:
            cache = self.cache_labels()
        self.labels = cache["labels"]

    def verify(self, i):
        time.sleep(0.1)                        # stat + decode on network storage
        h = int(hashlib.md5(str(i).encode()).hexdigest(), 16)
        return [float((h >> s) % 97) / 97 for s in (0, 8, 16, 24)]

    def cache_labels(self):
        labels = torch.tensor([self.verify(i) for i in range(self.n)])
        torch.save({"labels": labels, "version": 0.6}, self.cache_path)
        return {"labels": labels}

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return torch.cat([self.labels[i], self.labels[i] ** 2]), self.labels[i]


def main():
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=TIMEOUT))
    with torch_distributed_zero_first(LOCAL_RANK):
        dataset = LoadImagesAndLabels()
    sampler = torch.utils.data.DistributedSampler(dataset)
    loader = torch.utils.data.DataLoader(dataset, batch_size=8, sampler=sampler)
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(8, 32), nn.SiLU(), nn.Linear(32, 4)))
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = nn.functional.smooth_l1_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        if RANK in (-1, 0):
            print(f"{epoch}/3 box_loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
