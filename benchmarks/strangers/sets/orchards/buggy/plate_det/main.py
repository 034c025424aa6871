import json
import os
import shutil
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from data import make_plates
from hooks import BestKeeper, Printer, Rewind
from model import BoxNet
from trainer import Trainer


def main(path):
    with open(path) as fh:
        cfg = json.load(fh)
    dist.init_process_group("gloo")
    if dist.get_rank() == 0:
        shutil.rmtree(cfg["workdir"], ignore_errors=True)
        os.makedirs(cfg["workdir"])
    dist.barrier()
    torch.manual_seed(cfg["seed"])
    train = make_plates(cfg["images"], cfg["side"], 1)
    val = make_plates(cfg["val_images"], cfg["side"], 2)
    sampler = DistributedSampler(train, seed=cfg["seed"])
    net = DDP(BoxNet(cfg["side"]))
    opt = torch.optim.SGD(net.parameters(), lr=cfg["lr"] * 50, momentum=0.9)
    keeper = BestKeeper(cfg["workdir"])
    tr = Trainer(
        net, opt,
        DataLoader(train, cfg["batch"], sampler=sampler),
        DataLoader(val, cfg["batch"], sampler=DistributedSampler(val, shuffle=False)),
        sampler,
        [Printer(), keeper, Rewind(keeper, cfg["patience"])],
    )
    tr.fit(cfg["epochs"])
    final = tr.score()
    if tr.is_main:
        print(f"best model: val-L1 {final:.5f} ({keeper.path})")
    dist.destroy_process_group()


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "config.json"))
