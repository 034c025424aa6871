"""python job.py WHAT [N]: jobs that do to a doctor what jobs do, on N ranks that it forks."""

import contextlib
import ctypes
import datetime
import importlib
import json
import os
import re
import signal
import sys
import threading
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.ports import free_port


def train(steps=6, after_step=lambda step: None, model=None):
    net = DistributedDataParallel(model or nn.Linear(4, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(steps):
        optimizer.zero_grad()
        net(torch.ones(3, 4)).sum().backward()
        optimizer.step()
        after_step(step)
    os.write(1, f"rank {dist.get_rank()} trained\n".encode())


def learn(steps=6, after_step=lambda step: None):
    """The same without what imports torch._dynamo, which takes each rank a second."""
    net = nn.Linear(4, 2)
    for step in range(steps):
        net.zero_grad()
        net(torch.ones(3, 4)).sum().backward()
        for parameter in net.parameters():
            dist.all_reduce(parameter.grad)
            parameter.data -= 0.05 * parameter.grad
        after_step(step)


def well():
    """Ends its group, which may else end it at Python's end (DDP411)."""
    dist.init_process_group("gloo")
    train()
    dist.destroy_process_group()


def drift():
    """Ranks that are no longer alike, which no rank can see."""
    dist.init_process_group("gloo")
    model, rank = nn.Linear(4, 2), dist.get_rank()
    train(model=model, after_step=lambda _: model.bias.data.add_(rank))
    dist.destroy_process_group()


def well_by_hand():
    """For what DDP has no part in."""
    dist.init_process_group("gloo")
    learn()
    dist.destroy_process_group()


def deadlock(on=train):
    dist.init_process_group("gloo")
    if dist.get_rank() == 0:
        dist.barrier()  # the barrier
    on()


def deadlock_by_hand():
    deadlock(on=learn)


def long():
    """Goes on until a file named "enough" is there."""
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    Path(f"pid-{rank}").write_text(str(os.getpid()))

    def linger(step):
        while step == 3 and not Path("enough").exists():
            time.sleep(0.02)

    learn(after_step=linger)
    dist.destroy_process_group()
    Path(f"ended-{rank}").touch()


def late():
    """Rank 1 computes until a file named "enough" is there; the other waits for it."""
    dist.init_process_group("gloo")
    if dist.get_rank() == 1:
        while not Path("enough").exists():
            sum(range(1000))  # the work
    learn()
    dist.destroy_process_group()


def in_a_thread():
    """As Ray trains: the main thread has other things to do."""
    training = threading.Thread(target=deadlock_by_hand)
    training.start()
    while training.is_alive():
        time.sleep(0.1)


def starved():
    """Rank 1 takes more memory than its control group may have."""
    dist.init_process_group("gloo")
    if dist.get_rank() == 1:
        Path(os.environ["GROUP"]).write_text(str(os.getpid()))
        hoard = [bytearray(1 << 20) for _ in range(4000)]
        print(len(hoard))
    dist.barrier()


def never_joined():
    """Ctrl-C cannot reach who waits for a rank that is never started."""
    Path(f"pid-{os.environ['RANK']}").write_text(str(os.getpid()))
    dist.init_process_group("gloo", world_size=3)  # the join


def state():
    """What the process has from whoever started it, and what it has open."""
    dist.init_process_group("gloo")
    learn()
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    umask = os.umask(0)
    os.umask(umask)
    links = []
    for each in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # the one that lists them
            links.append(re.sub(r"\d+", "N", str(each.readlink())))
    told = {
        "descriptors": sorted(links),
        "environment": dict(os.environ),
        "signals": {key: status[key].strip() for key in ("SigBlk", "SigIgn", "SigCgt")},
        "limits": Path("/proc/self/limits").read_text(),
        "umask": umask,
        "group": os.getpgrp(),
        "session": os.getsid(0),
        "priority": os.nice(0),
        "cores": sorted(os.sched_getaffinity(0)),
        "terminal": [os.isatty(number) for number in (0, 1, 2)],
        "folder": str(Path.cwd()),
        "search": sys.path,
        "spared by the kernel": Path("/proc/self/oom_score_adj").read_text(),
    }
    Path(f"state-{dist.get_rank()}.json").write_text(json.dumps(told))


def paced():
    """Three seconds of steps in which rank 1 is the slow one."""
    dist.init_process_group("gloo")
    train(steps=150, after_step=lambda _: time.sleep(0.02 * dist.get_rank()))


def interrupted():
    """Counts the interrupts that it gets, and ends as it likes."""
    seen = []
    signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    print("ready", flush=True)
    deadline = time.monotonic() + 20
    while not seen and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.3)
    print(f"interrupted {len(seen)} time(s)", flush=True)
    sys.exit(5)


def odd():
    """Everything that a job may do to its own process."""
    sys.excepthook = lambda *_: print("my own excepthook", file=sys.stderr)
    signal.signal(signal.SIGUSR1, lambda *_: None)
    os.chdir("/")
    os.closerange(3, 256)
    if os.fork() == 0:
        with contextlib.suppress(OSError):
            os.kill(os.getppid(), signal.SIGUSR1)
        os._exit(0)
    os.wait()
    dist.init_process_group("gloo")
    os.closerange(3, 4)
    train()
    if dist.get_rank() == 1:
        raise ValueError("after all")


def replaced():
    """Becomes another program, which joins."""
    if "AGAIN" not in os.environ:
        os.environ["AGAIN"] = "1"
        os.execv(sys.executable, [sys.executable, *sys.argv])
    well_by_hand()


def sometimes():
    """Fails at the first attempt, and ends well at the second."""
    # All of them, before joining: gloo often fails to meet again where some have met before.
    if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        raise ValueError("the first time")
    well_by_hand()


def killed():
    dist.init_process_group("gloo")
    if dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.barrier()


def killed_later():
    """Once the doctor, who has started the launcher, holds a handle of this rank."""
    doctor = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1]
    while f"\nPid:\t{os.getpid()}\n" not in "".join(_told(f"/proc/{doctor}/fdinfo")):
        time.sleep(0.02)
    killed()


def _told(folder):
    """Of each descriptor in /proc, but for those that are closed meanwhile."""
    for each in Path(folder).iterdir():
        with contextlib.suppress(OSError):
            yield each.read_text()


def left():
    """A rank leaves without a word; the other is ended for it."""
    dist.init_process_group("gloo")
    if dist.get_rank() == 1:
        os._exit(3)
    time.sleep(60)


def both_fail():
    """Nobody was ended for another: this is how the script says that it has not learned enough."""
    dist.init_process_group("gloo")
    learn()
    rank = dist.get_rank()
    dist.destroy_process_group()
    Path(f"ended-{rank}").touch()
    while not Path(f"ended-{1 - rank}").exists():
        time.sleep(0.01)
    sys.exit(3)


def recovers():
    """A deadlock until a timeout, which the script survives."""
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=20))
    try:
        dist.recv(torch.ones(1), 1 - dist.get_rank())
    except RuntimeError:
        os.write(1, b"well, then not\n")


def never_destroyed():
    """Is aborted once Python has ended, as gloo's thread does it to one such job in many."""
    dist.init_process_group("gloo")
    dist.all_reduce(torch.ones(1))
    libc = ctypes.CDLL(None)
    at_exit = getattr(libc, "__cxa_atexit")
    at_exit(ctypes.cast(libc.abort, ctypes.c_void_p), None, None)


def alone():
    """Deterministic, on stdout and stderr, without any group."""
    torch.manual_seed(0)
    net = nn.Linear(4, 1)
    for step in range(3):
        print(step, float(net(torch.ones(4))), flush=True)
        print(f"step {step}", file=sys.stderr, flush=True)
    print(sys.argv, sys.path, sys.flags, [type(each) for each in sys.meta_path])
    sys.exit(3)


def alone_in_a_group():
    dist.init_process_group(
        "gloo", init_method=f"file://{Path('store').resolve()}", rank=0, world_size=1
    )
    train()


def fork(what, number):
    """Ranks as mpirun starts them, but for one import of torch, which takes a second or two."""
    if what in ("well", "drift", "deadlock", "paced"):
        importlib.import_module("torch._dynamo")  # DDP imports it, in as much time again
    os.environ.update(WORLD_SIZE=number, MASTER_ADDR="127.0.0.1")
    os.environ.setdefault("MASTER_PORT", str(free_port()))
    ranks = []
    for rank in range(int(number)):
        ranks.append(os.fork())
        if ranks[-1] == 0:
            os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank))
            return globals()[what]()
    return max(abs(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])) for pid in ranks)


if __name__ == "__main__":
    sys.exit(fork(*sys.argv[1:]) if sys.argv[2:] else globals()[sys.argv[1]]())
