import argparse
import shutil
import tempfile

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from graphs import Molecules
from session import Session


def segment(folder, until, args):
    """One stay in the queue: continue where the run stood and train up to epoch `until`."""
    torch.manual_seed(args.seed)
    run = Session(folder, args.lr)
    run.restore()
    net = DistributedDataParallel(run.net)
    data = Molecules(args.graphs)
    sampler = DistributedSampler(data, seed=args.seed)
    loader = DataLoader(data, args.batch, sampler=sampler)
    while run.epoch < until:
        sampler.set_epoch(run.epoch)
        tot = torch.zeros(2)
        for x, adj, y in loader:
            loss = F.mse_loss(net(x, adj), y)
            run.opt.zero_grad()
            loss.backward()
            run.opt.step()
            tot += torch.tensor([loss.item(), 1.0])
        dist.all_reduce(tot)
        run.epoch += 1
        run.save()
        if dist.get_rank() == 0:
            print(f"epoch {run.epoch} mse {(tot[0] / tot[1]).item():.5f}", flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--graphs", type=int, default=400)
    p.add_argument("--batch", type=int, default=20)
    p.add_argument("--lr", type=float, default=5e-3)
    p.add_argument("--seed", type=int, default=19)
    args = p.parse_args()
    dist.init_process_group("gloo")
    where = [tempfile.mkdtemp(prefix="mol_") if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(where, src=0)
    for until in (3, 6):
        segment(where[0], until, args)
    dist.barrier()
    if dist.get_rank() == 0:
        shutil.rmtree(where[0])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
