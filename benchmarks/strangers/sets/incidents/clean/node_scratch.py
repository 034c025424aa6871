import argparse
import os
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class CheckpointManager:
    """Checkpoints live on the scratch disk of the node a process runs on."""

    def __init__(self, scratch, rank):
        self.dir = Path(scratch)
        self.dir.mkdir(parents=True, exist_ok=True)
        self.rank = rank

    @property
    def state_path(self):
        return self.dir / "train_state.pt"

    def save(self, step, model, opt):
        if self.rank == 0:
            tmp = self.state_path.with_suffix(".tmp")
            torch.save({"step": step, "model": model.module.state_dict(), "opt": opt.state_dict()}, tmp)
            tmp.replace(self.state_path)
        dist.barrier()

    def load(self, model, opt):
        found = [self.state_path.exists()]
        dist.broadcast_object_list(found, src=0)
        if not found[0]:
            return 0
        payload = [torch.load(self.state_path)] if self.rank == 0 else [None]
        dist.broadcast_object_list(payload, src=0)
        state = payload[0]
        model.module.load_state_dict(state["model"])
        opt.load_state_dict(state["opt"])
        return state["step"]


def build():
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1)))
    return model, torch.optim.Adam(model.parameters(), lr=1e-3)


def run_phase(name, manager, rank, until, args):
    model, opt = build()
    start = manager.load(model, opt)
    if rank == 0:
        print(f"{name}: starting at step {start}", flush=True)
    gen = torch.Generator().manual_seed(start * 10 + rank)
    for step in range(start, until):
        x = torch.randn(args.batch_size, 16, generator=gen)
        loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if (step + 1) % args.save_every == 0:
            manager.save(step + 1, model, opt)
    if rank == 0:
        print(f"{name}: finished at step {until}, loss {loss.item():.3f}", flush=True)


def worker(rank, args, root):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(args.port)
    dist.init_process_group("gloo", rank=rank, world_size=args.nodes)
    manager = CheckpointManager(os.path.join(root, f"node{rank}", "scratch"), rank)
    run_phase("pretrain", manager, rank, args.steps // 2, args)
    run_phase("finetune", manager, rank, args.steps, args)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--nodes", type=int, default=2)
    ap.add_argument("--steps", type=int, default=40)
    ap.add_argument("--save-every", type=int, default=10)
    ap.add_argument("--batch-size", type=int, default=16)
    ap.add_argument("--port", type=int, default=29641)
    args = ap.parse_args()
    with tempfile.TemporaryDirectory() as root:
        mp.spawn(worker, args=(args, root), nprocs=args.nodes)
