import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


def side_by_side(recordings):
    longest = max(len(sound) for sound, _ in recordings)
    sounds = torch.zeros(len(recordings), longest, 40)
    for row, (sound, _) in enumerate(recordings):
        sounds[row, : len(sound)] = sound
    return sounds, torch.stack([bird for _, bird in recordings])


class Echo(nn.Module):
    """Hears each frame through a window of those before it."""

    def __init__(self, frames=32):
        super().__init__()
        self.window = torch.ones(frames, frames).tril()
        self.mix = nn.Linear(40, 40)

    def widen(self, frames):
        self.window = torch.ones(frames, frames).tril()

    def forward(self, sound):
        frames = sound.size(1)
        if self.window.size(0) < frames:
            self.widen(frames)
        return self.mix(self.window[:frames, :frames] @ sound)


class Birds(nn.Module):
    def __init__(self, kinds):
        super().__init__()
        self.echo = Echo()
        self.kinds = nn.Linear(40, kinds)

    def forward(self, sound):
        return self.kinds(self.echo(sound).mean(1))


def main(recordings, kinds):
    dist.init_process_group("gloo")
    hears = DistributedDataParallel(Birds(kinds))
    deal = DistributedSampler(recordings)
    batches = DataLoader(recordings, 4, sampler=deal, collate_fn=side_by_side)
    descent = torch.optim.SGD(hears.parameters(), lr=0.1)
    for epoch in range(3):
        deal.set_epoch(epoch)
        for sound, bird in batches:
            descent.zero_grad()
            nn.functional.cross_entropy(hears(sound), bird).backward()
            descent.step()
    dist.destroy_process_group()
