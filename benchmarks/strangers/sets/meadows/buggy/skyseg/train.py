import argparse
import logging

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from skyseg.confusion import Confusion
from skyseg.net import TinyUNet
from skyseg.tiles import CLASSES, TileSet

log = logging.getLogger("skyseg")


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--tiles", type=int, default=48)
    p.add_argument("--val-tiles", type=int, default=16)
    p.add_argument("--batch", type=int, default=8)
    p.add_argument("--lr", type=float, default=3e-3)
    return p.parse_args()


def fit_epoch(net, loader, opt):
    net.train()
    running = 0.0
    for img, mask in loader:
        opt.zero_grad(set_to_none=True)
        loss = F.cross_entropy(net(img), mask)
        loss.backward()
        opt.step()
        running += loss.item()
    return running / max(1, len(loader))


@torch.no_grad()
def score(net, loader):
    net.eval()
    conf = Confusion(len(CLASSES))
    for img, mask in loader:
        conf.add(mask, net(img).argmax(1))
    return conf.summary()


def main():
    args = parse()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    logging.basicConfig(level=logging.INFO if rank == 0 else logging.WARNING)
    torch.manual_seed(7)

    train_set = TileSet(args.tiles, base_seed=1)
    sampler = DistributedSampler(train_set, seed=7)
    train = DataLoader(train_set, args.batch, sampler=sampler)
    val_set = TileSet(args.val_tiles, base_seed=2)
    val = DataLoader(val_set, args.batch)

    net = DistributedDataParallel(TinyUNet(len(CLASSES)))
    opt = torch.optim.Adam(net.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        loss = fit_epoch(net, train, opt)
        log.info("epoch %d loss %.4f", epoch, loss)
        if rank == 0:
            report = score(net.module, val)
            log.info("epoch %d val %s", epoch, report)
        dist.barrier()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
