"""CTC recogniser with gradient accumulation; the trainer owns the loop."""
import logging
import os
from contextlib import nullcontext

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class ToySpeech(Dataset):
    def __init__(self, n=192, tokens=8, frames=24, words=5):
        g = torch.Generator().manual_seed(12)
        self.target = torch.randint(1, tokens, (n, words), generator=g)
        table = torch.randn(tokens, 10, generator=g)
        spread = self.target.repeat_interleave(frames // words, dim=1)
        spread = torch.cat([spread, spread[:, -1:].expand(-1, frames - spread.shape[1])], 1)
        self.speech = table[spread] + 0.5 * torch.randn(n, frames, 10, generator=g)

    def __len__(self):
        return len(self.speech)

    def __getitem__(self, i):
        return self.speech[i], self.target[i]


class CTCModel(nn.Module):
    def __init__(self, tokens=8, dim=24):
        super().__init__()
        self.encoder = nn.GRU(10, dim, batch_first=True, bidirectional=True)
        self.ctc = nn.Linear(2 * dim, tokens)

    def forward(self, speech, target):
        logp = self.ctc(self.encoder(speech)[0]).log_softmax(-1).transpose(0, 1)
        frames = torch.full((len(speech),), speech.shape[1])
        words = torch.full((len(speech),), target.shape[1])
        return nn.functional.ctc_loss(logp, target, frames, words)


class Trainer:
    def __init__(self, rank, world_size, accum_grad=4, grad_clip=5.0, max_epoch=3, lr=4e-3, log_interval=4):
        self.rank, self.world_size = rank, world_size
        self.accum_grad, self.grad_clip = accum_grad, grad_clip
        self.max_epoch, self.log_interval = max_epoch, log_interval
        torch.manual_seed(3)
        self.model = DDP(CTCModel())
        self.optim = torch.optim.Adam(self.model.parameters(), lr=lr)
        self.total_step = 0

    def train_epoch(self, epoch, loader):
        self.model.train()
        accum_grad = self.accum_grad
        usable = len(loader) // accum_grad * accum_grad
        self.optim.zero_grad()
        running = torch.zeros(2)
        for batch_idx, (speech, target) in enumerate(loader):
            if batch_idx >= usable:
                break
            my_context = nullcontext
            if self.world_size > 1:
                my_context = self.model.no_sync if batch_idx % accum_grad != 0 else my_context
            with my_context():
                loss = self.model(speech, target)
                running += torch.tensor([loss.item(), 1.0])
                (loss / accum_grad).backward()

            if (batch_idx + 1) % accum_grad == 0:
                if self.grad_clip > 0:
                    torch.nn.utils.clip_grad_norm_(self.model.parameters(), max_norm=self.grad_clip)
                self.optim.step()
                self.optim.zero_grad()
                self.total_step += 1
        return running

    def run(self, dataset):
        sampler = DistributedSampler(dataset, shuffle=True, drop_last=True)
        loader = DataLoader(dataset, batch_size=6, sampler=sampler, drop_last=True)
        for epoch in range(self.max_epoch):
            sampler.set_epoch(epoch)
            stats = self.train_epoch(epoch, loader)
            dist.all_reduce(stats)
            logging.info("epoch %d, step %d, ctc loss %.4f", epoch, self.total_step, (stats[0] / stats[1]).item())


def main():
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    logging.basicConfig(level="INFO" if rank == 0 else "ERROR", format="%(asctime)s %(message)s")
    dist.init_process_group(backend="gloo", init_method="env://")
    Trainer(rank, world_size).run(ToySpeech())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
