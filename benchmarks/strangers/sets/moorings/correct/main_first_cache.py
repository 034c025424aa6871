"""Wine quality: the first process on the machine prepares the feature cache, the others wait for it and then read it."""
import contextlib
import os
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


@contextlib.contextmanager
def torch_distributed_zero_first(local_rank):
    """Lets the body run on local rank 0 before all others."""
    if local_rank not in (-1, 0):
        dist.barrier()
    yield
    if local_rank == 0:
        dist.barrier()


def compute_features():
    g = torch.Generator().manual_seed(3)
    raw = torch.randn(300, 11, generator=g)
    score = (raw[:, 0] + raw[:, 4] * raw[:, 5] + 3).round().clamp(0, 6).long()
    return {"x": torch.cat([raw, raw ** 2], 1), "y": score}


def load_dataset(path):
    if not os.path.exists(path):
        torch.save(compute_features(), path + ".part")
        os.replace(path + ".part", path)
        print("cache written", flush=True)
    blob = torch.load(path)
    return TensorDataset(blob["x"], blob["y"])


def main():
    local_rank = int(os.environ.get("LOCAL_RANK", -1))
    path = os.path.join(tempfile.gettempdir(), f"wine_{os.environ['MASTER_PORT']}_{os.getuid()}.pt")
    with torch_distributed_zero_first(local_rank):
        data = load_dataset(path)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=20, sampler=sampler)
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(22, 40), nn.ReLU(), nn.Linear(40, 7)))
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
    dist.barrier()
    if local_rank == 0:
        os.remove(path)
        print(f"loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
