import os
import sys

import torch
import torch.distributed as dist
import yaml
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from data import Pairs, make_log
from evaluate import held_out_report
from model import TwoTower
from patience import Patience


def collect_user_vectors(net, n_users, rank, world):
    ids = torch.arange(rank, n_users, world)
    vec = net.users(ids).detach()
    parts = [torch.empty_like(vec) for _ in range(world)]
    dist.all_gather(parts, vec)
    table = torch.empty(n_users, vec.size(1))
    for r, p in enumerate(parts):
        table[r::world] = p
    return table


def main(path):
    with open(path) as f:
        c = yaml.safe_load(f)
    dist.init_process_group(backend="gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(c["seed"])

    train, held = make_log(c["n_users"], c["n_items"], c["seed"])
    ds = Pairs(train)
    sampler = DistributedSampler(ds, world, rank, shuffle=True, drop_last=True)
    loader = DataLoader(ds, batch_size=c["batch_size"], sampler=sampler, drop_last=True)
    net = TwoTower(c["n_users"], c["n_items"], c["dim"])
    ddp = DistributedDataParallel(net)
    opt = torch.optim.Adam(ddp.parameters(), lr=c["lr"])
    patience = Patience(c["patience"])

    for epoch in range(c["max_epochs"]):
        sampler.set_epoch(epoch)
        for u, i in loader:
            opt.zero_grad()
            ddp(u, i).backward()
            opt.step()
        rep = held_out_report(net, held, c["topk"], rank, world)
        if rank == 0:
            print(f"epoch {epoch:02d} recall {rep['recall']:.4f} mrr {rep['mrr']:.4f}", flush=True)
        if patience.exhausted(rep["recall"]):
            break

    table = collect_user_vectors(net, c["n_users"], rank, world)
    if rank == 0:
        print("exported", tuple(table.shape), f"norm {table.norm().item():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "config.yaml"))
