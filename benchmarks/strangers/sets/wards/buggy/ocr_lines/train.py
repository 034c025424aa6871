"""torchrun --nproc_per_node 2 train.py [config.json]"""
import json
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from data import CHARS, COLS, HEIGHT, Lines
from model import LineReader


def main(cfg):
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(cfg["seed"])
    data = Lines(cfg["lines"], cfg["seed"])
    sampler = DistributedSampler(data)
    loader = DataLoader(data, cfg["batch"], sampler=sampler)
    net = DDP(LineReader(CHARS, HEIGHT, **cfg["model"]), **cfg["ddp"])
    ctc = nn.CTCLoss()
    opt = torch.optim.AdamW(net.parameters(), lr=cfg["lr"])
    for epoch in range(cfg["epochs"]):
        sampler.set_epoch(epoch)
        total = 0.0
        for image, text in loader:
            logp = net(image)
            n = len(text)
            loss = ctc(logp.transpose(0, 1), text, torch.full((n,), COLS), torch.full((n,), text.shape[1]))
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        stat = torch.tensor([total, float(len(loader))])
        dist.all_reduce(stat)
        if dist.get_rank() == 0:
            print(f"epoch {epoch} ctc {stat[0] / stat[1]:.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    path = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "config.json")
    with open(path) as f:
        main(json.load(f))
