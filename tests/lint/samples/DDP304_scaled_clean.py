"""A scaler that does it all: it steps each batch without one, and every so often with it."""

import argparse
from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Scaler:
    def __init__(self):
        self.scaler = torch.amp.GradScaler("cuda")

    def __call__(self, loss, learner, is_due):
        self.scaler.scale(loss).backward()
        if is_due:
            self.scaler.step(learner)
            self.scaler.update()


def epoch(model, learner, batches, scaler, every):
    for number, batch in enumerate(batches):
        is_due = (number + 1) % every == 0
        with nullcontext() if is_due or scaler is None else model.no_sync():
            loss = model(batch).square().mean()
            if scaler is None:
                loss.backward()
                learner.step()
                learner.zero_grad()
            else:
                scaler(loss / every, learner, is_due=is_due)
                if is_due:
                    learner.zero_grad()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--half", action="store_true")
    parser.add_argument("--every", type=int, default=4)
    options = parser.parse_args()
    dist.init_process_group("nccl")
    device = dist.get_rank() % torch.cuda.device_count()
    torch.cuda.set_device(device)
    model = DistributedDataParallel(nn.Linear(8, 4).to(device))
    learner = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = Scaler() if options.half else None
    for _ in range(10):
        batches = [torch.randn(16, 8, device=device) for _ in range(32)]
        epoch(model, learner, batches, scaler, options.every)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
