import argparse
import os
import sys
from contextlib import contextmanager

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from episodes import GraspEpisodes
from policy import GraspPolicy


@contextmanager
def process_group():
    dist.init_process_group("gloo")
    try:
        yield dist.get_rank(), dist.get_world_size()
    finally:
        dist.destroy_process_group()


def objective(out, batch, step, contact_every):
    terms = {"bc": F.mse_loss(out["action"], batch["action"])}
    contact = F.binary_cross_entropy_with_logits(out["contact"], batch["contact"])
    terms["contact"] = 0.1 * contact * float(step % contact_every == 0)
    return sum(terms.values()), {k: v.item() for k, v in terms.items()}


def build(sample):
    policy = GraspPolicy()
    with torch.no_grad():
        policy(sample["joint"][None], sample["depth"][None])
    return policy


def clone(opt, rank, world):
    torch.manual_seed(21)
    demos = GraspEpisodes()
    sampler = DistributedSampler(demos, world, rank, drop_last=True)
    loader = DataLoader(demos, opt.batch_size, sampler=sampler)
    policy = DDP(build(demos[0]))
    adam = torch.optim.Adam(policy.parameters(), lr=opt.lr)
    step = 0
    for epoch in range(opt.epochs):
        sampler.set_epoch(epoch)
        for batch in loader:
            out = policy(batch["joint"], batch["depth"])
            loss, parts = objective(out, batch, step, opt.contact_every)
            adam.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
            adam.step()
            step += 1
        if rank == 0:
            print(f"epoch {epoch} step {step} {parts}", flush=True)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=2)
    ap.add_argument("--batch-size", type=int, default=32)
    ap.add_argument("--contact-every", type=int, default=4)
    ap.add_argument("--lr", type=float, default=2e-3)
    opt = ap.parse_args()

    with process_group() as (rank, world):
        clone(opt, rank, world)


if __name__ == "__main__":
    main()
