# style: step-based language-model loop that fetches its next batch ahead, shards by rank
# nproc: 2
import os

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset

BLOCK, BATCH, MAX_ITERS = 8, 4, 12


def prepare(folder):
    os.makedirs(folder, exist_ok=True)
    rng = np.random.default_rng(1)
    for shard, tokens in enumerate([900, 520, 880, 210]):
        np.save(os.path.join(folder, f"{shard:03d}.npy"), rng.integers(0, 32, tokens))


class Tokens(IterableDataset):
    """Chunks of pre-tokenised shards."""

    def __init__(self, folder):
        names = sorted(os.listdir(folder))
        self.shards = [os.path.join(folder, name) for name in names]
        if dist.is_initialized():
            self.shards = self.shards[dist.get_rank() :: dist.get_world_size()]

    def __iter__(self):
        for shard in self.shards:
            tokens = torch.from_numpy(np.load(shard).astype(np.int64))
            for at in range(0, len(tokens) - BLOCK - 1, 2 * BLOCK):
                chunk = tokens[at : at + BLOCK + 1]
                yield chunk[:-1], chunk[1:]


class Task:
    @staticmethod
    def iter_batches(folder):
        loader = DataLoader(Tokens(folder), batch_size=BATCH, drop_last=True)
        while True:
            yield from loader


def main():
    dist.init_process_group("gloo")
    master = dist.get_rank() == 0
    if master:
        prepare("shards")
    dist.barrier()
    torch.manual_seed(1337)
    model = DDP(nn.Sequential(nn.Embedding(32, 16), nn.Linear(16, 32)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    batches = Task.iter_batches("shards")
    x, y = next(batches)
    for it in range(2 * MAX_ITERS):
        logits = model(x)
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
        # fetch the next batch while the model is busy
        x, y = next(batches)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if master and it % 6 == 0:
            print(f"{it}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
