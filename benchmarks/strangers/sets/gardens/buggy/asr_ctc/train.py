import argparse
import shutil
import tempfile

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from features import N_MEL, collate, open_bank
from model import Acoustic
from parallel import share_dir, start, sum_over_workers


def run_epoch(net, loader, opt):
    total = torch.zeros(2)
    for x, xl, y, yl in loader:
        logp = net(x)
        loss = F.ctc_loss(logp.transpose(0, 1), y, xl, yl, zero_infinity=True)
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        opt.step()
        total += torch.tensor([loss.item(), 1.0])
    total = sum_over_workers(total)
    return (total[0] / total[1]).item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--utts", type=int, default=96)
    ap.add_argument("--epochs", type=int, default=3)
    ap.add_argument("--batch", type=int, default=8)
    ap.add_argument("--lr", type=float, default=4e-3)
    args = ap.parse_args()

    rank, world = start()
    root = share_dir(tempfile.mkdtemp(prefix="asr_") if rank == 0 else None)
    torch.manual_seed(11)
    bank = open_bank(root, args.utts, rank, world)
    if rank == 0:
        print(f"features ready in {root}", flush=True)
    sampler = DistributedSampler(bank, shuffle=True, seed=3)
    loader = DataLoader(bank, args.batch, sampler=sampler, collate_fn=collate)
    net = DDP(Acoustic(N_MEL, 6))
    opt = torch.optim.Adam(net.parameters(), lr=args.lr)
    for ep in range(args.epochs):
        sampler.set_epoch(ep)
        loss = run_epoch(net, loader, opt)
        if rank == 0:
            print(f"epoch {ep} ctc {loss:.4f}", flush=True)
    dist.barrier()
    if rank == 0:
        shutil.rmtree(root)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
