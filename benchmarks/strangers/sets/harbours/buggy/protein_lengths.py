"""LSTM on protein chains of very different lengths; chains are sorted so that a batch needs little padding."""
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.nn.utils.rnn import pad_sequence


class LengthSortedBatches:
    def __init__(self, chains, batch_size, rank, world, seed=0):
        self.chains, self.batch_size, self.seed, self.epoch = chains, batch_size, seed, 0
        order = sorted(range(len(chains)), key=lambda i: len(chains[i][0]))
        per_rank = len(order) // world
        self.mine = order[rank * per_rank:(rank + 1) * per_rank]

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        groups = [self.mine[i:i + self.batch_size] for i in range(0, len(self.mine), self.batch_size)]
        g = torch.Generator().manual_seed(self.seed + self.epoch)
        for k in torch.randperm(len(groups), generator=g).tolist():
            xs, ys = zip(*(self.chains[i] for i in groups[k]))
            yield pad_sequence(xs, batch_first=True), torch.stack(ys)


class ChainNet(nn.Module):
    def __init__(self, dim=160):
        super().__init__()
        self.emb = nn.Embedding(21, dim, padding_idx=0)
        self.rnn = nn.LSTM(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, 2)

    def forward(self, x):
        out, _ = self.rnn(self.emb(x))
        return self.head(out.mean(1))


def chains(n=192, seed=3):
    g = torch.Generator().manual_seed(seed)
    data = []
    for _ in range(n):
        size = int(10 + 490 * torch.rand(1, generator=g) ** 2)
        seq = torch.randint(1, 21, (size,), generator=g)
        data.append((seq, (seq.float().mean() > 10.5).long()))
    return data


def main(epochs=2):
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DDP(ChainNet())
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    batches = LengthSortedBatches(chains(), 12, rank, world)
    for epoch in range(epochs):
        batches.set_epoch(epoch)
        begin, busy, residues = time.time(), 0.0, 0
        for x, y in batches:
            t = time.process_time()
            loss = nn.functional.cross_entropy(model(x), y)
            busy += time.process_time() - t
            residues += x.numel()
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch} rank {rank} residues {residues} forward {busy:.2f} s epoch {time.time() - begin:.2f} s", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
