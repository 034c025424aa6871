import shutil

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from films import make_films
from settings import Settings
from store import BestKeeper


def build(cfg):
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d((cfg.size, 1)),
        nn.Flatten(), nn.Linear(8 * cfg.size, cfg.classes))


@torch.no_grad()
def accuracy(net, data, rank, world):
    x, y = data.tensors
    x, y = x[rank::world], y[rank::world]
    hit = torch.tensor([(net(x).argmax(1) == y).sum().item(), len(y)], dtype=torch.float64)
    dist.all_reduce(hit)
    return (hit[0] / hit[1]).item()


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    cfg = Settings()
    name = [cfg.run]
    dist.broadcast_object_list(name, src=0)
    cfg.run = name[0]
    torch.manual_seed(cfg.seed)
    keeper = BestKeeper(cfg.folder)
    train, val, test = (make_films(cfg, n, s) for n, s in ((cfg.n_train, 1), (cfg.n_val, 2), (cfg.n_val, 3)))
    net = build(cfg)
    ddp = DistributedDataParallel(net)
    opt = torch.optim.Adam(ddp.parameters(), lr=cfg.lr)
    sampler = DistributedSampler(train, seed=cfg.seed)
    loader = DataLoader(train, cfg.batch, sampler=sampler)
    for epoch in range(cfg.epochs):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = nn.functional.cross_entropy(ddp(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        acc = accuracy(net, val, rank, world)
        keeper.offer(net, acc)
        if rank == 0:
            print(f"epoch {epoch} val acc {acc:.3f}", flush=True)
    keeper.restore(net)
    acc = accuracy(net, test, rank, world)
    if rank == 0:
        print(f"test acc {acc:.3f} (best val {keeper.score:.3f})", flush=True)
        shutil.rmtree(cfg.folder)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
