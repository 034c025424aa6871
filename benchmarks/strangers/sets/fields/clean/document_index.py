"""Next-character model over many documents. A sample index is built once and memory-mapped by everybody."""
import os
import shutil
import tempfile
import time

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

CACHE = os.path.join(tempfile.gettempdir(), f"index-cache-{os.getppid()}")
SEQ = 16


def log(*message):
    if dist.get_rank() == 0:
        print(*message, flush=True)


def documents(n=400):
    rng = np.random.default_rng(0)
    return [np.cumsum(rng.integers(1, 4, size=rng.integers(20, 90))) % 50 for _ in range(n)]


def write_index(docs, path):
    began = time.time()
    rng = np.random.default_rng(1)
    rows = [(d, s) for d in range(len(docs)) for s in range(0, len(docs[d]) - SEQ - 1)]
    for i in range(len(rows) - 1, 0, -1):
        j = int(rng.integers(0, i + 1))
        rows[i], rows[j] = rows[j], rows[i]
    os.makedirs(os.path.dirname(path), exist_ok=True)
    np.save(path, np.array(rows, dtype=np.int32))
    log(f"built an index of {len(rows)} rows in {time.time() - began:.2f} s")


class GPTLikeDataset(torch.utils.data.Dataset):
    def __init__(self, docs, name):
        self.docs = docs
        path = os.path.join(CACHE, f"{name}_doc_idx.npy")
        if dist.get_rank() == 0 and not os.path.isfile(path):
            write_index(docs, path)
        dist.barrier()
        self.index = np.load(path, allow_pickle=True, mmap_mode="r")

    def __len__(self):
        return len(self.index)

    def __getitem__(self, i):
        d, s = self.index[i]
        return torch.from_numpy(self.docs[d][s:s + SEQ + 1].astype(np.int64))


class CharModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(50, 24)
        self.r = nn.LSTM(24, 48, batch_first=True)
        self.o = nn.Linear(48, 50)

    def forward(self, t):
        return self.o(self.r(self.e(t))[0])


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    data = GPTLikeDataset(documents(), "train")
    sampler = torch.utils.data.distributed.DistributedSampler(data, shuffle=False)
    loader = torch.utils.data.DataLoader(data, batch_size=32, sampler=sampler)
    net = DDP(CharModel())
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    for it, text in enumerate(loader):
        if it == 50:
            break
        loss = nn.functional.cross_entropy(net(text[:, :-1]).transpose(1, 2), text[:, 1:])
        opt.zero_grad()
        loss.backward()
        opt.step()
    log(f"loss {loss.item():.3f}")
    dist.barrier()
    if dist.get_rank() == 0:
        shutil.rmtree(CACHE)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
