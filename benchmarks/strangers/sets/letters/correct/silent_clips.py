"""Phoneme classifier on short clips; clips that cannot be decoded are replaced, so every step has its batch."""
import logging

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler

log = logging.getLogger("clips")


class BadClip(RuntimeError):
    pass


class Clips(Dataset):
    def __init__(self, n=120, length=64):
        g = torch.Generator().manual_seed(0)
        self.wave = torch.randn(n, length, generator=g)
        self.label = torch.randint(0, 6, (n,), generator=g)
        self.wave += torch.sin(torch.arange(length) * (1 + self.label[:, None]) / 6)
        self.broken = set(range(7, n, 23))

    def __len__(self):
        return len(self.wave)

    def decode(self, i):
        if i in self.broken:
            raise BadClip(f"clip {i}: truncated header")
        return self.wave[i]

    def __getitem__(self, i):
        try:
            return self.decode(i), self.label[i]
        except BadClip as e:
            log.warning("%s", e)
            return torch.zeros(self.wave.shape[1]), torch.tensor(-100)


def step(net, opt, wave, label):
    logits = net(wave)
    if (label >= 0).any():
        loss = nn.functional.cross_entropy(logits, label, ignore_index=-100)
    else:
        loss = logits.sum() * 0.0
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.item()


def main():
    logging.basicConfig()
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    torch.manual_seed(1)
    clips = Clips()
    sampler = DistributedSampler(clips)
    loader = DataLoader(clips, 2, sampler=sampler)
    net = DDP(nn.Sequential(nn.Unflatten(1, (1, -1)), nn.Conv1d(1, 12, 9, 4), nn.ReLU(), nn.Flatten(),
                            nn.Linear(168, 6)))
    opt = torch.optim.SGD(net.parameters(), 0.05)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        losses = [step(net, opt, *b) for b in loader]
        if dist.get_rank() == 0:
            print(f"epoch {epoch} loss {sum(losses) / len(losses):.3f}", flush=True)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
