import argparse

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from console import Console
from data import StripeLanes
from engine import Engine
from net import MiniUNet


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=2)
    ap.add_argument("--batch", type=int, default=16)
    ap.add_argument("--log-every", type=int, default=5)
    opt = ap.parse_args()

    dist.init_process_group("gloo")
    torch.manual_seed(0)
    train, val = StripeLanes(512, seed=1), StripeLanes(128, seed=2)
    sampler = DistributedSampler(train, shuffle=True, drop_last=True)
    loaders = (
        DataLoader(train, opt.batch, sampler=sampler, drop_last=True),
        DataLoader(val, opt.batch, sampler=DistributedSampler(val, shuffle=False)),
    )
    net = DistributedDataParallel(MiniUNet())
    adam = torch.optim.AdamW(net.parameters(), 3e-3)
    console = Console(enabled=dist.get_rank() == 0, every=opt.log_every)
    Engine(net, adam, loaders, sampler, console).fit(opt.epochs)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
