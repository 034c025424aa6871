import random

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset, random_split
from torch.utils.data.distributed import DistributedSampler


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def make_sets(full, val_fraction, seed):
    n_val = int(len(full) * val_fraction)
    return random_split(full, [len(full) - n_val, n_val], generator=torch.Generator().manual_seed(seed))


def main(seed=3407):
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    seed = seed + rank
    set_seed(seed)
    x = torch.linspace(-2, 2, 100).unsqueeze(1)
    noise = torch.randn(100, 1, generator=torch.Generator().manual_seed(0))
    full = TensorDataset(x, (3 * x).sin() + noise, torch.arange(100))
    train, val = make_sets(full, 0.3, seed)
    sampler = DistributedSampler(train)
    loader = DataLoader(train, batch_size=7, sampler=sampler)
    model = DDP(torch.nn.Sequential(torch.nn.Linear(1, 128), torch.nn.ReLU(), torch.nn.Linear(128, 1)))
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    seen = torch.zeros(100)
    for epoch in range(12):
        sampler.set_epoch(epoch)
        for xb, yb, idx in loader:
            seen[idx] = 1
            loss = (model(xb) - yb).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    held_out = torch.zeros(100)
    held_out[val.indices] = 1
    stats = torch.stack([seen, held_out])
    dist.all_reduce(stats)
    if rank == 0:
        used, held = (stats > 0).sum(1).tolist()
        print(f"loss {loss.item():.3f} trained on {used} samples, validated on {held} samples of {len(full)}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
