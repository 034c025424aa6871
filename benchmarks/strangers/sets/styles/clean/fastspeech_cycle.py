"""Duration-free text-to-mel regression trained for a number of steps, FastSpeech-like layout."""
import argparse

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

from fastspeech_cycle_lib.data import build_loader
from fastspeech_cycle_lib.model import TextToMel, masked_l1
from fastspeech_cycle_lib.state import RunningLoss, cycle


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--total-step", type=int, default=60)
    p.add_argument("--batch-size", type=int, default=6)
    p.add_argument("--max-frames", type=int, default=44)
    p.add_argument("--lr", type=float, default=2e-3)
    return p.parse_args()


def main():
    args = get_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(7)
    loader = build_loader(rank, world, args.batch_size, args.max_frames)
    model = DDP(TextToMel())
    opt = torch.optim.Adam(model.parameters(), lr=args.lr, betas=(0.9, 0.98))
    running = RunningLoss()

    def epoch_end(epoch):
        summary = running.flush()
        for group in opt.param_groups:
            group["lr"] *= 0.9
        if rank == 0:
            print(f"epoch {epoch} mel {summary:.4f} lr {opt.param_groups[0]['lr']:.2e}", flush=True)

    batches = cycle(loader, epoch_end)
    for step in range(1, args.total_step + 1):
        text, mel, frames = next(batches)
        pred = model(text, mel.shape[1])
        loss = masked_l1(pred, mel, frames)
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        running.add(loss.item())
        if step % 20 == 0 and rank == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
