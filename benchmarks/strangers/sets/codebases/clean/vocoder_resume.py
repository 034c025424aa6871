"""A small neural vocoder, trained in two sittings with checkpoints in between (hifi-gan train script)."""
import argparse
import glob
import itertools
import os
import shutil
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class AttrDict(dict):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.__dict__ = self


h = AttrDict(seed=1234, batch_size=8, segment_size=256, hop_size=32, learning_rate=1e-3, adam_b1=0.8,
             adam_b2=0.99, lr_decay=0.95, nodes_share_disk=False)


class MelDataset(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        t = torch.arange(h.segment_size) / h.segment_size
        f = 2 + 14 * torch.rand(n, 3, 1, generator=g)
        self.audio = (torch.sin(6.28 * f * t).mean(1) + 0.02 * torch.randn(n, h.segment_size, generator=g))

    def __len__(self):
        return len(self.audio)

    def __getitem__(self, i):
        y = self.audio[i]
        frames = y.view(-1, h.hop_size)
        return torch.fft.rfft(frames).abs().t().log1p(), y.unsqueeze(0)


class Generator(nn.Module):
    def __init__(self, bins=17, ch=24):
        super().__init__()
        self.pre = nn.Conv1d(bins, ch, 3, padding=1)
        self.up = nn.ConvTranspose1d(ch, 12, 2 * h.hop_size, h.hop_size, h.hop_size // 2)
        self.post = nn.Conv1d(12, 1, 7, padding=3)

    def forward(self, x):
        return torch.tanh(self.post(F.leaky_relu(self.up(F.leaky_relu(self.pre(x))))))


class PeriodDiscriminator(nn.Module):
    def __init__(self, period):
        super().__init__()
        self.period = period
        self.net = nn.Sequential(nn.Conv2d(1, 8, (5, 1), (3, 1)), nn.LeakyReLU(0.1), nn.Conv2d(8, 1, (3, 1)))

    def forward(self, y):
        y = F.pad(y, (0, -y.shape[-1] % self.period))
        return self.net(y.view(len(y), 1, -1, self.period)).flatten(1)


def scan_checkpoint(cp_dir, prefix):
    found = sorted(glob.glob(os.path.join(cp_dir, prefix + "????????")))
    return found[-1] if found else None


def save_checkpoint(filepath, obj):
    torch.save(obj, filepath + ".tmp")
    os.replace(filepath + ".tmp", filepath)


def train(rank, a):
    torch.manual_seed(h.seed)
    generator, mpd, msd = Generator(), PeriodDiscriminator(3), PeriodDiscriminator(5)
    cp_g = cp_do = None
    if os.path.isdir(a.checkpoint_path):
        cp_g = scan_checkpoint(a.checkpoint_path, "g_")
        cp_do = scan_checkpoint(a.checkpoint_path, "do_")
    steps, last_epoch, state_dict_do = 0, -1, None
    if cp_g is not None and cp_do is not None:
        state_dict_do = torch.load(cp_do, map_location="cpu")
        generator.load_state_dict(torch.load(cp_g, map_location="cpu")["generator"])
        mpd.load_state_dict(state_dict_do["mpd"])
        msd.load_state_dict(state_dict_do["msd"])
        steps, last_epoch = state_dict_do["steps"] + 1, state_dict_do["epoch"]
    resumed = [steps, last_epoch, state_dict_do]
    dist.broadcast_object_list(resumed, src=0)
    steps, last_epoch, state_dict_do = resumed
    generator, mpd, msd = (DistributedDataParallel(m) for m in (generator, mpd, msd))
    optim_g = torch.optim.AdamW(generator.parameters(), h.learning_rate, betas=(h.adam_b1, h.adam_b2))
    optim_d = torch.optim.AdamW(itertools.chain(msd.parameters(), mpd.parameters()), h.learning_rate,
                                betas=(h.adam_b1, h.adam_b2))
    if state_dict_do is not None:
        optim_g.load_state_dict(state_dict_do["optim_g"])
        optim_d.load_state_dict(state_dict_do["optim_d"])
    trainset = MelDataset(128, seed=0)
    train_sampler = DistributedSampler(trainset)
    loader = DataLoader(trainset, h.batch_size, sampler=train_sampler, drop_last=True)
    mel_error = torch.zeros(())
    for epoch in range(max(0, last_epoch + 1), a.training_epochs):
        train_sampler.set_epoch(epoch)
        for x, y in loader:
            y_g = generator(x)
            optim_d.zero_grad()
            loss_d = sum((1 - d(y)).pow(2).mean() + d(y_g.detach()).pow(2).mean() for d in (mpd, msd))
            loss_d.backward()
            optim_d.step()
            optim_g.zero_grad()
            mel_error = F.l1_loss(y_g, y)
            loss_g = 45 * mel_error + sum((1 - d(y_g)).pow(2).mean() for d in (mpd, msd))
            loss_g.backward()
            optim_g.step()
            steps += 1
        if rank == 0:
            print(f"Epoch {epoch} steps {steps} mel error {mel_error.item():.4f}", flush=True)
            save_checkpoint(f"{a.checkpoint_path}/g_{steps:08d}", {"generator": generator.module.state_dict()})
            save_checkpoint(f"{a.checkpoint_path}/do_{steps:08d}", {
                "mpd": mpd.module.state_dict(), "msd": msd.module.state_dict(), "steps": steps, "epoch": epoch,
                "optim_g": optim_g.state_dict(), "optim_d": optim_d.state_dict()})
    total = mel_error.detach().clone()
    dist.all_reduce(total)
    if rank == 0:
        print(f"sitting over at step {steps}: {total.item() / dist.get_world_size():.4f}", flush=True)
    return total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--scratch", default=os.path.join(tempfile.gettempdir(), "cp_vocoder"))
    parser.add_argument("--training_epochs", default=5, type=int)
    parser.add_argument("--first_sitting", default=2, type=int)
    a = parser.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    job = [f"{a.scratch}_{os.getpid()}" if rank == 0 else None]
    dist.broadcast_object_list(job)
    node = 0 if h.nodes_share_disk else rank  # one process a node here, each with a scratch disk of its own
    a.checkpoint_path = os.path.join(job[0], f"node{node}")
    os.makedirs(a.checkpoint_path, exist_ok=True)
    dist.barrier()
    last = a.training_epochs
    for a.training_epochs in (a.first_sitting, last):
        train(rank, a)
    dist.barrier()
    if rank == 0:
        shutil.rmtree(job[0])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
