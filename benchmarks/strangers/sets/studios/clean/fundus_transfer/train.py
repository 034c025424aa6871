"""Pretrain on vessel direction, then probe "tilted or straight" with a frozen backbone.

    torchrun --nproc-per-node 2 train.py
"""
import os
import shutil

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from checkpoint import job_folder, load_backbone, save_weights
from data import vessels
from nets import FundusNet

CONFIG = {
    "pretrain": {"task": "angle", "outputs": 4, "n": 480, "epochs": 6, "lr": 4e-3, "seed": 1},
    "probe": {"task": "tilted", "outputs": 2, "n": 80, "epochs": 5, "lr": 1e-2, "seed": 2},
}


def fit(net, c):
    ddp = DDP(net)
    data = vessels(c["n"], 16, c["seed"], c["task"])
    sampler = DistributedSampler(data)
    loader = DataLoader(data, 20, sampler=sampler)
    opt = torch.optim.Adam([p for p in ddp.parameters() if p.requires_grad], lr=c["lr"])
    for epoch in range(c["epochs"]):
        sampler.set_epoch(epoch)
        tally = torch.zeros(3)
        for x, y in loader:
            out = ddp(x)
            loss = F.cross_entropy(out, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            tally += torch.tensor([loss.item() * len(y), (out.argmax(1) == y).sum(), len(y)])
        dist.all_reduce(tally)
        if dist.get_rank() == 0:
            print(f"{c['task']} {epoch}: loss {tally[0] / tally[2]:.4f} acc {tally[1] / tally[2]:.3f}", flush=True)
    return ddp


def main():
    dist.init_process_group("gloo")
    folder = job_folder()
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "angle.pt")

    torch.manual_seed(0)
    ddp = fit(FundusNet(CONFIG["pretrain"]["outputs"]), CONFIG["pretrain"])
    save_weights(ddp, path)

    torch.manual_seed(99)
    net = load_backbone(FundusNet(CONFIG["probe"]["outputs"]), path)
    net.backbone().requires_grad_(False)
    fit(net, CONFIG["probe"])

    dist.barrier()
    if dist.get_rank() == 0:
        shutil.rmtree(folder)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
