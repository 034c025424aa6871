import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from . import comm


class Tagger(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.conv = nn.Conv1d(s.mels, 48, 5, padding=2)
        self.rnn = nn.GRU(48, 48, bidirectional=True, batch_first=True)
        self.out = nn.Linear(96, s.phones)

    def forward(self, mel):
        h = F.relu(self.conv(mel)).transpose(1, 2)
        return self.out(self.rnn(h)[0]).transpose(1, 2)


def corpus(s, n, seed):
    g = torch.Generator().manual_seed(seed)
    shape = torch.randn(s.phones, s.mels, generator=torch.Generator().manual_seed(99))
    y = torch.randint(s.phones, (n, s.frames // 4), generator=g).repeat_interleave(4, 1)
    return TensorDataset(shape[y].transpose(1, 2) + torch.randn(n, s.mels, s.frames, generator=g), y)


class Runner:
    def __init__(self, settings):
        self.s = settings
        comm.start()
        torch.manual_seed(0)
        net = Tagger(settings)
        self.net = DistributedDataParallel(net, process_group=comm.group()) if comm.world() > 1 else net
        self.smooth = copy.deepcopy(self.net).requires_grad_(False)
        self.optim = torch.optim.Adam(self.net.parameters(), lr=settings.lr)
        self.train, self.train_sampler = self.loader(corpus(settings, settings.utterances, 1), True)
        self.dev, _ = self.loader(corpus(settings, settings.dev, 2), False)

    def loader(self, data, shuffle):
        sampler = DistributedSampler(data, comm.world(), comm.rank(), shuffle=shuffle)
        return DataLoader(data, self.s.batch, sampler=sampler), sampler

    def epoch(self, i):
        self.net.train()
        self.train_sampler.set_epoch(i)
        for mel, phones in self.train:
            loss = F.cross_entropy(self.net(mel), phones)
            self.optim.zero_grad()
            loss.backward()
            self.optim.step()
            self.follow()

    @torch.no_grad()
    def follow(self, decay=0.9):
        for slow, fast in zip(self.smooth.parameters(), self.net.parameters()):
            slow.lerp_(fast, 1 - decay)

    @torch.no_grad()
    def score(self):
        self.smooth.eval()
        posts, refs = [], []
        for mel, phones in self.dev:
            posts.append(self.smooth(mel).softmax(1))
            refs.append(phones)
        posts, refs = torch.cat(posts), torch.cat(refs)
        top = comm.gather(posts.transpose(1, 2)).flatten(0, 1).topk(3).indices
        ref = comm.gather(refs).flatten()
        hit = top == ref[:, None]
        return hit[:, 0].float().mean().item(), hit.any(1).float().mean().item()

    def run(self):
        for i in range(self.s.epochs):
            self.epoch(i)
            top1, top3 = self.score()
            if comm.rank() == 0:
                print(f"epoch {i}: frame accuracy {top1:.3f}, within three {top3:.3f}", flush=True)
        comm.stop()
