"""Masked-unit prediction on raw audio, manual optimisation in a small module class."""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

SAMPLE_RATE, HOP, UNITS = 800, 20, 10


class Utterances(Dataset):
    def __init__(self, n=96, silent=(37,)):
        g = torch.Generator().manual_seed(5)
        self.labels = torch.randint(UNITS, (n, SAMPLE_RATE // HOP), generator=g)
        t = torch.arange(SAMPLE_RATE).float()
        freq = (self.labels.repeat_interleave(HOP, dim=1) + 1) * 0.12
        self.wave = torch.sin(freq * t) + 0.2 * torch.randn(n, SAMPLE_RATE, generator=g)
        for i in silent:
            self.wave[i] = 0.0

    def __len__(self):
        return len(self.wave)

    def __getitem__(self, i):
        w = self.wave[i]
        return (w - w.mean()) / w.std(), self.labels[i]


class UnitEncoder(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.front = nn.Conv1d(1, dim, HOP, stride=HOP)
        self.mix = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, UNITS)

    def forward(self, wave, mask):
        h = F.gelu(self.front(wave[:, None])).transpose(1, 2)
        h = h * (~mask)[..., None]
        return self.out(self.mix(h)[0])


class PretrainModule:
    def __init__(self, lr=4e-3, clip=5.0):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        torch.manual_seed(1)
        self.model = DistributedDataParallel(UnitEncoder())
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=lr)
        self.mask_gen = torch.Generator().manual_seed(1000 + self.rank)
        self.clip = clip
        self.nan_counter = 0

    def _step(self, batch):
        wave, units = batch
        mask = torch.rand(units.shape, generator=self.mask_gen) < 0.3
        logits = self.model(wave, mask)
        loss = F.cross_entropy(logits.flatten(0, 1), units.flatten(), reduction="sum")
        return loss, units.numel()

    def training_step(self, batch):
        opt = self.optimizer
        opt.zero_grad()
        loss, num_frame = self._step(batch)
        if torch.isinf(loss) or torch.isnan(loss):
            self.nan_counter += 1
            print(f"[rank {self.rank}] loss is NaN/Inf, skipping this batch", flush=True)
            return None

        frames = [torch.zeros(1) for _ in range(self.world)]
        dist.all_gather(frames, torch.tensor([float(num_frame)]))
        loss = loss * self.world / torch.cat(frames).sum()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        opt.step()
        return loss.item()

    def on_epoch_end(self, epoch, losses):
        stats = torch.tensor([sum(losses), len(losses), self.nan_counter], dtype=torch.float)
        dist.barrier()
        dist.all_reduce(stats)
        if self.rank == 0:
            print(f"epoch {epoch}: loss {stats[0] / stats[1]:.4f}, skipped {int(stats[2])}", flush=True)


def fit(epochs=2):
    data = Utterances()
    sampler = DistributedSampler(data, shuffle=True, seed=2)
    loader = DataLoader(data, batch_size=6, sampler=sampler)
    module = PretrainModule()
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        losses = [x for x in map(module.training_step, loader) if x is not None]
        module.on_epoch_end(epoch, losses)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    fit()
    dist.destroy_process_group()
