"""Multi-label tagging of short clips. Batches are balanced by duration: clips
of similar length go together. The runner and its hooks follow the
old mmcv ones.
"""
import random

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset, Sampler

N_TAGS = 4


class Clips(Dataset):
    def __init__(self, n, seed):
        rng = random.Random(seed)
        g = torch.Generator().manual_seed(seed)
        self.items = []
        for _ in range(n):
            length = rng.randint(20, 60)
            tags = [rng.random() < 0.4 for _ in range(N_TAGS)]
            t = torch.arange(length).float()
            wave = 0.4 * torch.randn(length, generator=g)
            for k, on in enumerate(tags):
                if on:
                    wave += torch.sin(t * (0.3 + 0.5 * k) + rng.random() * 6)
            self.items.append((wave, torch.tensor(tags).float()))
        self.lengths = [len(w) for w, _ in self.items]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


class DistributedLengthBatches(Sampler):
    """Shuffles, sorts by length inside pools, cuts batches, deals them out."""

    def __init__(self, lengths, batch_size, rank, world_size, pool=8, seed=0):
        self.lengths, self.batch_size = lengths, batch_size
        self.rank, self.world_size = rank, world_size
        self.pool, self.seed, self.epoch = pool, seed, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return len(self.lengths) // self.batch_size // self.world_size

    def __iter__(self):
        rng = random.Random(self.seed * 10007 + self.epoch)
        order = list(range(len(self.lengths)))
        rng.shuffle(order)
        chunk = self.pool * self.batch_size
        batches = []
        for s in range(0, len(order), chunk):
            part = sorted(order[s:s + chunk], key=lambda i: self.lengths[i])
            batches += [part[k:k + self.batch_size] for k in range(0, len(part), self.batch_size)]
        batches = [b for b in batches if len(b) == self.batch_size]
        rng.shuffle(batches)
        n = len(self)
        return iter(batches[self.rank: n * self.world_size: self.world_size])


def collate(rows):
    waves, tags = zip(*rows)
    return pad_sequence(waves, batch_first=True)[:, None], torch.stack(tags)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(1, 24, 9, padding=4), nn.ReLU(), nn.Conv1d(24, 24, 9, padding=4), nn.ReLU()
        )
        self.head = nn.Linear(24, N_TAGS)

    def forward(self, x):
        return self.head(self.conv(x).amax(-1))


class Hook:
    def before_epoch(self, runner):
        pass

    def after_iter(self, runner):
        pass

    def after_epoch(self, runner):
        pass


class DistSamplerSeedHook(Hook):
    """Lets distributed samplers reshuffle."""

    def before_epoch(self, runner):
        sampler = runner.data_loader.batch_sampler
        if hasattr(sampler, "set_epoch"):
            sampler.set_epoch(runner.epoch)


class OptimizerHook(Hook):
    def __init__(self, grad_clip=None):
        self.grad_clip = grad_clip

    def after_iter(self, runner):
        runner.optimizer.zero_grad()
        runner.outputs["loss"].backward()
        if self.grad_clip is not None:
            nn.utils.clip_grad_norm_(runner.model.parameters(), self.grad_clip)
        runner.optimizer.step()


class TextLoggerHook(Hook):
    def before_epoch(self, runner):
        self.loss_sum, self.count = 0.0, 0

    def after_iter(self, runner):
        self.loss_sum += runner.outputs["loss"].item()
        self.count += 1

    def after_epoch(self, runner):
        t = torch.tensor([self.loss_sum, float(self.count)])
        dist.all_reduce(t)
        if dist.get_rank() == 0:
            print(f"Epoch [{runner.epoch + 1}] loss: {(t[0] / t[1]).item():.4f}", flush=True)


class EpochBasedRunner:
    def __init__(self, model, batch_processor, optimizer):
        self.model, self.batch_processor, self.optimizer = model, batch_processor, optimizer
        self._hooks = []
        self.epoch = self.iter = 0

    def register_hook(self, hook):
        self._hooks.append(hook)

    def call_hook(self, fn_name):
        for hook in self._hooks:
            getattr(hook, fn_name)(self)

    def train(self, data_loader):
        self.model.train()
        self.data_loader = data_loader
        self.call_hook("before_epoch")
        for data_batch in data_loader:
            self.outputs = self.batch_processor(self.model, data_batch)
            self.call_hook("after_iter")
            self.iter += 1
        self.call_hook("after_epoch")
        self.epoch += 1

    def run(self, data_loader, max_epochs):
        while self.epoch < max_epochs:
            self.train(data_loader)


def batch_processor(model, data):
    x, tags = data
    return {"loss": F.binary_cross_entropy_with_logits(model(x), tags)}


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(5)
    data = Clips(260, seed=5)
    batches = DistributedLengthBatches(data.lengths, 8, rank, world, seed=5)
    loader = DataLoader(data, batch_sampler=batches, collate_fn=collate)
    model = DDP(Tagger())
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    runner = EpochBasedRunner(model, batch_processor, optimizer)
    runner.register_hook(OptimizerHook(grad_clip=5.0))
    runner.register_hook(DistSamplerSeedHook())
    runner.register_hook(TextLoggerHook())
    runner.run(loader, max_epochs=5)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
