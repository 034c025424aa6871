"""Computes the features of clips, a part of them on each GPU."""

import argparse
import os
from pathlib import Path

import torch
from torch import distributed, nn
from torch.utils.data import DataLoader, DistributedSampler

from clips import Clips, encoder

LOCAL_RANK = int(os.environ["LOCAL_RANK"])


class Spectrogram(nn.Module):
    def __init__(self, bins):
        super().__init__()
        self.register_buffer("window", torch.hann_window(bins))

    def forward(self, wave):
        return torch.stft(wave, 512, window=self.window.to(wave.device), return_complex=True).abs()


@torch.inference_mode()
def main():
    torch.cuda.set_device(LOCAL_RANK)
    distributed.init_process_group(backend="nccl")
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default="features")
    args = parser.parse_args()

    model = encoder("base").eval().cuda()
    spectrogram = Spectrogram(512).eval().cuda()
    clips = Clips(args.data)
    loader = DataLoader(clips, batch_size=8, sampler=DistributedSampler(clips, shuffle=False))
    args.out.mkdir(exist_ok=True, parents=True)
    for number, batch in enumerate(loader):
        found = model(spectrogram(batch["wave"].cuda())).cpu()
        torch.save((batch["id"], found), args.out / f"r{LOCAL_RANK}_{number:05d}.pth")
    distributed.barrier()


if __name__ == "__main__":
    main()
    distributed.destroy_process_group()
