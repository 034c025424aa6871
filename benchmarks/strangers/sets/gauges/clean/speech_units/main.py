"""Discrete unit classifier over MFCC frames.  torchrun --nproc_per_node=2 main.py"""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

from batching import FrameBudgetSampler
from corpus import Utterances, collate

HPARAMS = {"epochs": 2, "max_frames": 600, "lr": 1e-3, "hidden": 32, "log_every": 10}


class UnitNet(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.rnn = nn.GRU(13, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 10)

    def forward(self, x, lens):
        h, _ = self.rnn(x)
        mask = (torch.arange(h.size(1))[None] < lens[:, None]).unsqueeze(-1)
        return self.out((h * mask).sum(1) / lens[:, None])


class Brain:
    def __init__(self, hp):
        self.hp = hp
        self.rank = dist.get_rank()
        torch.manual_seed(7)
        corpus = Utterances()
        self.batches = FrameBudgetSampler(corpus.lengths, hp["max_frames"], self.rank, dist.get_world_size())
        self.loader = DataLoader(corpus, batch_sampler=self.batches, collate_fn=collate)
        self.model = DDP(UnitNet(hp["hidden"]))
        self.opt = torch.optim.Adam(self.model.parameters(), lr=hp["lr"])
        self.step = 0

    def fit_batch(self, x, lens, units):
        loss = nn.functional.cross_entropy(self.model(x, lens), units)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.step += 1
        return loss.item()

    def fit(self):
        for epoch in range(self.hp["epochs"]):
            self.batches.set_epoch(epoch)
            for batch in self.loader:
                value = self.fit_batch(*batch)
                if self.rank == 0 and self.step % self.hp["log_every"] == 0:
                    print(f"step {self.step} loss {value:.3f}", flush=True)
            dist.barrier()


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    Brain(HPARAMS).fit()
    if dist.get_rank() == 0:
        print("done")
    dist.destroy_process_group()
