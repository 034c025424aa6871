# style: signal handler, checkpoint on SIGUSR2, sys.exit
# nproc: 2
import os
import signal
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Preemption:
    """Notes a request to stop; all ranks agree on it at the end of a step."""

    def __init__(self):
        self.asked = False
        self.before = signal.signal(signal.SIGUSR2, self.note)

    def note(self, number, frame):
        self.asked = True

    def agreed(self):
        flag = torch.tensor(int(self.asked))
        dist.all_reduce(flag, op=dist.ReduceOp.MAX)
        return bool(flag)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    preemption = Preemption()
    torch.manual_seed(0)
    model = DDP(nn.Linear(6, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(rank)
    for step in range(50):
        x = torch.randn(8, 6, generator=generator)
        optimizer.zero_grad()
        model(x).abs().mean().backward()
        optimizer.step()
        if step == 6 and rank == 1:
            os.kill(os.getpid(), signal.SIGUSR2)
        if preemption.agreed():
            if rank == 0:
                torch.save({"model": model.module.state_dict(), "step": step}, "preempted.pt")
            dist.barrier()
            del model, optimizer
            dist.destroy_process_group()
            sys.exit(0)
    raise RuntimeError("nobody asked to stop")


if __name__ == "__main__":
    main()
