"""Neural codec for speech frames: encoder, EMA vector quantiser, decoder.

    torchrun --nproc_per_node=2 codec_vq.py
"""
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from codec_vq_lib import EMAQuantizer, speaker_batches

PARAMS = {
    "model": {"frame": 24, "dim": 6, "codes": 16},
    "train": {"batches": 80, "lr": 3e-3, "commit": 0.25, "log_every": 20},
}


class Codec(nn.Module):
    def __init__(self, frame, dim, codes):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(frame, 32), nn.ReLU(), nn.Linear(32, dim))
        self.vq = EMAQuantizer(codes, dim)
        self.decoder = nn.Sequential(nn.Linear(dim, 32), nn.ReLU(), nn.Linear(32, frame))

    def forward(self, x):
        z, commit, index = self.vq(self.encoder(x))
        return self.decoder(z), commit, index


class Runner:
    def __init__(self, params):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.p = params["train"]
        torch.manual_seed(0)
        self.model = DistributedDataParallel(Codec(**params["model"]))
        self.opt = torch.optim.Adam(self.model.parameters(), lr=self.p["lr"])

    def train(self):
        for i, x in enumerate(speaker_batches(self.rank, self.world, self.p["batches"]), start=1):
            out, commit, index = self.model(x)
            loss = F.mse_loss(out, x) + self.p["commit"] * commit
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            if i % self.p["log_every"] == 0:
                self.log(i, loss.detach(), index)

    def log(self, i, loss, index):
        used = self.model.module.vq.perplexity(index)
        dist.all_reduce(loss)
        if self.rank == 0:
            print(f"batch {i} loss {loss.item() / self.world:.4f} codes in use {used:.1f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    Runner(PARAMS).train()
    dist.barrier()
    dist.destroy_process_group()
