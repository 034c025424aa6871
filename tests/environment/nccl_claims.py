"""Performs what `env` says about NCCL on a GPU: imports torch once, then a forked child per claim.

python nccl_claims.py FOLDER prints one JSON object: claim -> (variables, what became of it). Each
is a group of one rank that adds a number up, but for the claim of two ranks on one device.
"""

import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist

from ddpdoctor.environment.variables import known

AT_A_TIME = 24
DEADLINE = 40.0
FOLDER = Path(sys.argv[1])
CONF = FOLDER / "nccl.conf"
ODD = {"NCCL_DEBUG_FILE", "NCCL_TOPO_DUMP_FILE", "NCCL_GRAPH_DUMP_FILE", "NCCL_CONF_FILE"}

Claims = dict[str, dict[str, str]]
CLAIMS: Claims = {
    "nothing set": {},
    "interface eth99": {"NCCL_SOCKET_IFNAME": "eth99"},
    "interface lo": {"NCCL_SOCKET_IFNAME": "lo"},
    "interface none left": {"NCCL_SOCKET_IFNAME": "^eth,lo,en,veth,docker,br"},
    "family 6": {"NCCL_SOCKET_FAMILY": "AF_INET6"},
    "net IB": {"NCCL_NET": "IB"},
    "net Socket": {"NCCL_NET": "Socket"},
    "net Sockets": {"NCCL_NET": "Sockets"},
    "not waiting": {"NCCL_COMM_BLOCKING": "0"},
    "not waiting, told": {"NCCL_COMM_BLOCKING": "0", "TORCH_NCCL_USE_COMM_NONBLOCKING": "1"},
    "waiting": {"NCCL_COMM_BLOCKING": "1"},
    "file eth99": {"NCCL_CONF_FILE": str(CONF)},
    "file eth99 overruled": {"NCCL_CONF_FILE": str(CONF), "NCCL_SOCKET_IFNAME": "lo"},
    "algo Rong": {"NCCL_ALGO": "Rong"},
    "algo Ring": {"NCCL_ALGO": "Ring"},
    "proto Simpel": {"NCCL_PROTO": "Simpel"},
    "devices twice": {"CUDA_VISIBLE_DEVICES": "0,0"},
    "devices none": {"CUDA_VISIBLE_DEVICES": ""},
    "devices beyond": {"CUDA_VISIBLE_DEVICES": "0,7"},
    "two ranks": {},
    **{
        f"{name}={value}": {name: value}
        for name, row in known().items()
        if row.of_nccl and name not in ODD
        for value in ("maybe", *(("-9", "99999") if row.fatal or row.least is not None else ()))
    },
}


def add_up(rank: int, size: int, meeting: str) -> str:
    torch.cuda.set_device(0)
    seen = torch.cuda.device_count()
    dist.init_process_group("nccl", init_method=meeting, rank=rank, world_size=size)
    number = torch.ones(1, device="cuda")
    dist.all_reduce(number)
    torch.cuda.synchronize()
    return f"sum {number.item():g} on {seen}"


def perform(variables: dict[str, str], size: int, rank: int, meeting: str, report: Path) -> None:
    os.environ.update({"GLOO_SOCKET_IFNAME": "lo", **variables})
    with report.with_suffix(".log").open("w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    try:
        outcome = add_up(rank, size, meeting)
    except Exception as error:
        outcome = f"{type(error).__name__}: {error}"
    report.write_text(outcome)
    os._exit(0)


def start(name: str, number: int) -> tuple[int, Path]:
    report = FOLDER / f"{number}.txt"
    meeting = f"file://{tempfile.mktemp(dir=FOLDER)}"
    size = 2 if name == "two ranks" else 1
    for rank in reversed(range(size)):
        if (pid := os.fork()) == 0:
            os.setpgid(0, 0)
            perform(CLAIMS[name], size, rank, meeting, FOLDER / f"{number}-{rank}.txt")
    return pid, report.with_name(f"{number}-0.txt")


def outcome_of(pid: int, report: Path, began: float) -> str | None:
    """None while it goes on."""
    ended, status = os.waitpid(pid, os.WNOHANG)
    if not ended:
        if time.monotonic() - began < DEADLINE:
            return None
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        return "hangs"
    if status:
        return signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else "exit"
    return report.read_text()


def main() -> None:
    CONF.write_text("NCCL_SOCKET_IFNAME=eth99\n")
    waiting = list(CLAIMS)
    running: dict[str, tuple[int, Path, float]] = {}
    outcomes: dict[str, str] = {}
    while waiting or running:
        while waiting and len(running) < AT_A_TIME:
            name = waiting.pop(0)
            running[name] = (*start(name, len(waiting)), time.monotonic())
        for name, child in list(running.items()):
            if (said := outcome_of(*child)) is not None:
                outcomes[name] = said
                del running[name]
        time.sleep(0.05)
    print(json.dumps({name: (CLAIMS[name], said) for name, said in outcomes.items()}))


if __name__ == "__main__":
    main()
