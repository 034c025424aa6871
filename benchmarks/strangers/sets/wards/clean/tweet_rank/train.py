"""How far will a message spread?   torchrun --nproc_per_node 2 train.py"""
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from board import Board, Mse, PairAccuracy, Spearman

WORDS, LENGTH = 400, 20


def messages(n=30720, seed=1):
    g = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, WORDS, (n, LENGTH), generator=g)
    heat = torch.randn(WORDS, generator=g)
    y = heat[ids].mean(1) * 3 + 0.3 * torch.randn(n, generator=g)
    return TensorDataset(ids, y)


class Ranker(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.bag = nn.EmbeddingBag(WORDS, dim)
        self.out = nn.Sequential(nn.Linear(dim, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, ids):
        return self.out(self.bag(ids)).squeeze(-1)


def main(epochs=2, batch=64):
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    data = messages()
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch, sampler=sampler)
    net = DDP(Ranker())
    opt = torch.optim.Adam(net.parameters(), lr=1e-2)
    board = Board(mse=Mse(), pairs=PairAccuracy(), spearman=Spearman())
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        board.reset()
        start = time.perf_counter()
        for ids, y in loader:
            pred = net(ids)
            loss = nn.functional.mse_loss(pred, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            board.update(pred, y)
        scores = board.compute()
        if dist.get_rank() == 0:
            text = "  ".join(f"{k} {v:.4f}" for k, v in scores.items())
            print(f"epoch {epoch}  {text}  {time.perf_counter() - start:.2f}s", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
