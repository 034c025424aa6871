import json
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from dataset import RecipePairs
from objective import PairLoss
from towers import TwoTowers

DEFAULTS = {"dishes": 240, "batch": 16, "epochs": 4, "lr": 2e-3, "seed": 14}


def settings(argv):
    cfg = dict(DEFAULTS)
    if argv:
        with open(argv[0]) as f:
            cfg.update(json.load(f))
    return cfg


@torch.no_grad()
def recall_at_1(model, data):
    photo, text, _ = model(data.photo, data.bag)
    return (photo @ text.T).argmax(1).eq(torch.arange(len(photo))).float().mean().item()


def main(argv):
    cfg = settings(argv)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(cfg["seed"])
    data = RecipePairs(cfg["dishes"])
    sampler = DistributedSampler(data, seed=cfg["seed"], drop_last=True)
    loader = DataLoader(data, cfg["batch"], sampler=sampler, drop_last=True)
    model = DistributedDataParallel(TwoTowers())
    opt = torch.optim.Adam(model.parameters(), lr=cfg["lr"])
    criterion = PairLoss()
    for epoch in range(cfg["epochs"]):
        sampler.set_epoch(epoch)
        for photo, bag in loader:
            loss = criterion(*model(photo, bag))
            opt.zero_grad()
            loss.backward()
            opt.step()
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.3f}", flush=True)
    if rank == 0:
        print("recall@1", round(recall_at_1(model.module, RecipePairs(120, seed=1)), 3))
    dist.barrier()


if __name__ == "__main__":
    main(sys.argv[1:])
    dist.destroy_process_group()
