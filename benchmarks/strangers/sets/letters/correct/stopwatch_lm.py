"""Bigram LM with a progress line by the clock of each process, snapshots by the step, and a time limit kept by rank 0."""
import os
import tempfile
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

VOCAB, STEPS, SAVE_EVERY, TELL_EVERY_S, LIMIT_S = 200, 120, 40, 0.5, 60.0


class Stopwatch:
    def __init__(self, every):
        self.every, self.last = every, time.monotonic()

    def rang(self):
        if time.monotonic() - self.last < self.every:
            return False
        self.last = time.monotonic()
        return True


def out_of_time(begin):
    late = torch.tensor([float(time.monotonic() - begin > LIMIT_S)])
    dist.broadcast(late, src=0)
    return bool(late.item())


def main():
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    torch.manual_seed(5)
    rank = dist.get_rank()
    net = DDP(nn.Sequential(nn.Embedding(VOCAB, 48), nn.Linear(48, 48), nn.GELU(), nn.Linear(48, VOCAB)))
    opt = torch.optim.AdamW(net.parameters(), 3e-3)
    g = torch.Generator().manual_seed(rank)
    watch, begin = Stopwatch(TELL_EVERY_S), time.monotonic()
    path = os.path.join(tempfile.gettempdir(), "stopwatch_lm.pt")
    for step in range(1, STEPS + 1):
        ids = torch.randint(0, VOCAB, (64,), generator=g)
        loss = F.cross_entropy(net(ids), (3 * ids + 1) % VOCAB)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if watch.rang():
            print(f"rank {rank}: {step}/{STEPS}, loss {loss.item():.3f}", flush=True)
        if step % SAVE_EVERY == 0:
            if rank == 0:
                torch.save(net.module.state_dict(), path)
            dist.barrier()
        if out_of_time(begin):
            break
    print(f"rank {rank} ended at step {step}", flush=True)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
