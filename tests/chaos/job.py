"""job.py WHAT RANK STEP: a training in which that rank does WHAT at that step."""

import ctypes
import os
import signal
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 12
PAUSE = 0.03


def hold_the_gil(seconds):
    """In C, where no other thread of Python's gets a turn."""
    ctypes.PyDLL(None).usleep(int(seconds * 1e6))


def do(what):
    match what:
        case "raise":
            raise ValueError("so it was asked")  # <-- raise
        case "exit":
            os._exit(7)  # <-- exit
        case "leave":
            sys.exit(0)  # <-- leave
        case "segv" | "kill" | "abrt":
            os.kill(os.getpid(), getattr(signal, f"SIG{what.upper()}"))
            time.sleep(60)
        case "barrier":
            dist.barrier()  # <-- barrier
        case "spin":
            while True:  # <-- spin
                pass
        case "gil":
            hold_the_gil(2)
        case "long-gil":
            hold_the_gil(60)
        case "memory":
            import resource

            resource.setrlimit(resource.RLIMIT_AS, (1 << 20, 1 << 20))
            bytearray(1 << 28)  # <-- memory
        case "descriptors":
            import resource

            resource.setrlimit(resource.RLIMIT_NOFILE, (1, 1))
            Path("/dev/null").open()  # <-- descriptors  # noqa: SIM115


def main(what, culprit, when):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    Path(f"pid-{rank}").write_text(str(os.getpid()))
    net = DistributedDataParallel(nn.Linear(4, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(STEPS):
        if (rank, step) == (culprit, when):
            do(what)
        optimizer.zero_grad()
        net(torch.ones(3, 4)).sum().backward()
        optimizer.step()
        Path(f"step-{rank}").write_text(str(step))
        time.sleep(PAUSE)
    os.write(1, f"rank {rank} trained\n".encode())
    dist.barrier()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
