"""Denoising with numpy augmentation in the loader workers."""
import random
from functools import partial

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class NoisySignals(Dataset):
    def __init__(self, n=64):
        t = np.linspace(0, 6, 20)
        self.clean = np.stack([np.sin(t * (1 + i % 5)) for i in range(n)]).astype("float32")

    def __len__(self):
        return len(self.clean)

    def __getitem__(self, i):
        noise = np.random.randn(20).astype("float32") * random.choice([0.2, 0.4])
        return self.clean[i] + noise, self.clean[i], noise[:2]


def seed_worker(worker_id, base, num_workers, rank):
    seed = base + num_workers * rank + worker_id
    np.random.seed(seed)
    random.seed(seed)


def main(workers=2, seed=42):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(seed)
    ds = NoisySignals()
    sampler = DistributedSampler(ds, shuffle=True)
    loader = DataLoader(ds, 8, sampler=sampler, num_workers=workers,
                        worker_init_fn=partial(seed_worker, base=seed, num_workers=workers, rank=rank))
    model = DDP(torch.nn.Sequential(torch.nn.Linear(20, 40), torch.nn.ReLU(), torch.nn.Linear(40, 20)))
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    seen = []
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for noisy, clean, head in loader:
            loss = (model(noisy) - clean).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            seen.append(head[0, 0].item())
    print(f"rank {rank} loss {loss.item():.4f} noise of first batches {[round(v, 3) for v in seen[:3]]}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
