"""Performs what `env` says about torch: imports it once, then a forked child per claim.

python environment_claims.py FOLDER prints one JSON object: claim -> (variables, what became of it).
The variables are set in the claim's child, before c10d reads them. All children run side by side;
one that is still there when all that must end have ended, and some seconds have passed, "hangs".
"""

import ctypes
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import torch
import torch._dynamo  # DDP imports it: once here, not in each child
import torch.distributed as dist

from ddpdoctor.environment.variables import known
from tests.control_group import ControlGroup, NoControlGroup

SECONDS = 2.0
DEADLINE = 60.0
FOLDER = Path(sys.argv[1])
# Bound and never listened on: whoever connects is refused.
NOBODY = socket.socket()
NOBODY.bind(("127.0.0.1", 0))
DEAF = NOBODY.getsockname()[1]
NOBODY_ELSE = 54321
FILES, SIZE = (resource.RLIMIT_NOFILE, 100), (resource.RLIMIT_FSIZE, 8 << 20)
HEALTHY = {"GLOO_SOCKET_IFNAME": "lo", "TORCHELASTIC_USE_AGENT_STORE": "False"}


def join_file() -> str:
    """A group of one, met through a file: the timeout that it got."""
    store = f"file://{tempfile.mktemp(dir=FOLDER)}"
    dist.init_process_group("gloo", init_method=store, rank=0, world_size=1)
    group = dist.distributed_c10d._get_default_group()
    return f"timeout {group._get_backend(torch.device('cpu')).options._timeout}"


def join_env() -> str:
    """A group by env://, whose own timeout is longer than the deadline."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    return "joined"


def build_ddp() -> str:
    dist.set_debug_level_from_env()  # as `import torch.distributed` does
    join_file()
    torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
    return "built"


def set_debug_level() -> str:
    dist.set_debug_level_from_env()
    return "set"


def parse_torchrun() -> str:
    from torch.distributed.run import parse_args

    options = parse_args(["train.py"])
    return f"{options.nproc_per_node} {options.master_port} {options.standalone}"


PET = {
    "PET_NPROC_PER_NODE": ("four", "4.0", "", "0", "-2", "auto", "cpu", " 4 "),
    "PET_NNODES": ("x", "", "1:2:3", "3:1", "0", "0:2", "-1", "2", "1:4", "2:2"),
    "PET_MASTER_PORT": ("x", "", "70000", "-1", "29512"),
    "PET_NODE_RANK": ("x", "", "0"),
    "PET_MAX_RESTARTS": ("x", "", "-1", "0", "3"),
    "PET_MONITOR_INTERVAL": ("x", "", "0", "-1", "0.1", "5", "1e-1", "1E-1"),
    "PET_SHUTDOWN_TIMEOUT": ("x", "", "-1", "0", "30"),
    "PET_TEE": ("x", "9", "", "3", "0:1,1:2"),
    "PET_REDIRECTS": ("0:9", "", "0"),
    "PET_RDZV_CONF": ("a", "a=b,c", "a=", "a,b=1", "", "a=b", "a=b,c=d", "a=b=c"),
    "PET_LOCAL_RANKS_FILTER": ("x", "0,x", "", "0,1"),
    "PET_STANDALONE": ("yes", "", "1", "0"),
}


def meet_other_nodes() -> str:
    """torchrun, as far as its meeting with those of the other nodes."""
    from torch.distributed.elastic.rendezvous import RendezvousParameters
    from torch.distributed.elastic.rendezvous.registry import get_rendezvous_handler
    from torch.distributed.run import config_from_args, parse_args

    options = parse_args(["--master-addr=127.0.0.1", f"--master-port={DEAF}", "train.py"])
    config, _, _ = config_from_args(options)
    get_rendezvous_handler(
        RendezvousParameters(
            backend=config.rdzv_backend,
            endpoint=config.rdzv_endpoint,
            run_id=config.run_id,
            min_nodes=config.min_nodes,
            max_nodes=config.max_nodes,
            **config.rdzv_configs,
        )
    ).next_rendezvous()
    return "met"


def count_threads() -> str:
    """In an interpreter of its own: libraries read these variables as they are loaded."""
    code = "import torch; print(torch.get_num_threads(), torch.backends.mkl.is_available())"
    return subprocess.check_output([sys.executable, "-c", code], text=True).strip()


def values_in_torchrun() -> str:
    """What of these gets as far as the rendezvous, and the specification of the workers."""
    from torch.distributed.elastic.agent.server import WorkerSpec
    from torch.distributed.elastic.rendezvous.utils import parse_rendezvous_endpoint
    from torch.distributed.run import config_from_args, parse_args

    tried = []
    for name, values in PET.items():
        for value in values:
            os.environ[name] = value
            try:
                options = parse_args(["train.py"])
                if options.master_port is None:
                    options.master_port = 29500  # as run() does before it asks for the rest
                config, program, _ = config_from_args(options)
                parse_rendezvous_endpoint(config.rdzv_endpoint, 29500)
                WorkerSpec(
                    role="",
                    local_world_size=config.nproc_per_node,
                    rdzv_handler=None,  # type: ignore[arg-type]
                    entrypoint=program,
                    monitor_interval=config.monitor_interval,
                )
                tried.append((name, value, "taken"))
            except (Exception, SystemExit):
                tried.append((name, value, "refused"))
        del os.environ[name]
    return json.dumps(tried)


def program_of_torchrun() -> str:
    from torch.distributed.run import config_from_args, parse_args

    return str(config_from_args(parse_args(["train.py"]))[1])


def options_of_torchrun() -> str:
    """The variables that give its options their defaults."""
    from torch.distributed import argparse_util, run

    actions = run.get_args_parser()._actions
    kinds = (argparse_util.env, argparse_util.check_env)
    return " ".join(f"PET_{one.dest.upper()}" for one in actions if isinstance(one, kinds))


def parse_devices() -> str:
    return str(torch.cuda._parse_visible_devices())


def share_memory() -> str:
    libc = ctypes.CDLL(None, use_errno=True)
    mount = (b"none", b"/dev/shm", b"tmpfs", 0, b"size=1m")
    # MS_REC | MS_PRIVATE first, or the whole machine would have this /dev/shm.
    private = (b"none", b"/", None, 0x44000, None)
    if libc.unshare(0x20000) or libc.mount(*private) or libc.mount(*mount):
        return f"skipped: {os.strerror(ctypes.get_errno())}"
    torch.ones(4 << 20, dtype=torch.uint8).share_memory_()
    return "shared"


def in_a_child(prepare: Callable[[], object], work: Callable[[], str]) -> str:
    """What it says, or fails with, in a process that is prepared first, and cannot go back."""
    reads, writes = os.pipe()
    if (pid := os.fork()) == 0:
        try:
            prepare()
        except OSError as error:
            said = f"skipped: {error}"
        else:
            try:
                said = work()
            except Exception as error:
                said = f"{type(error).__name__}: {error}"
        os.write(writes, said.encode())
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads) as answer:
        said = answer.read()
    status = os.waitpid(pid, 0)[1]
    return signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else said


def limited(which: int, most: int) -> Callable[[], object]:
    return lambda: resource.setrlimit(which, (most, most))


def hand_over(number: int, size: int) -> str:
    """As data-loader workers do: so many tensors in shared memory, each an open file."""
    kept = [torch.ones(size, dtype=torch.uint8).share_memory_() for _ in range(number)]
    return f"{len(kept)} handed over"


def join_with(before: Callable[[], object]) -> str:
    with tempfile.TemporaryDirectory() as room:
        Path(room).chmod(0o777)  # the rank is another user
        store = f"file://{room}/store"
        return in_a_child(
            before,
            lambda: (
                dist.init_process_group("gloo", init_method=store, rank=0, world_size=1) or "joined"
            ),
        )


def as_another_user(most: int) -> Callable[[], object]:
    def prepare() -> None:
        limited(resource.RLIMIT_NPROC, most)()
        os.setresuid(NOBODY_ELSE, NOBODY_ELSE, NOBODY_ELSE)

    return prepare


def join_in_a_group(tasks: int) -> str:
    try:
        with ControlGroup(memory=2 << 30, tasks=tasks) as group:
            return join_with(group.join)
    except NoControlGroup as error:
        return f"skipped: {error}"


def join_nccl() -> str:
    dist.init_process_group(
        "nccl", init_method=f"file://{tempfile.mktemp(dir=FOLDER)}", rank=0, world_size=1
    )
    return "joined"


def env(port: int, **changes: str) -> dict[str, str]:
    own = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "RANK": "0", "WORLD_SIZE": "1"}
    return {**own, **changes}


PHANTOMS = (
    *("NCCL_TIMEOUT", "NCCL_COMM_TIMEOUT", "GLOO_TIMEOUT", "GLOO_TIMEOUT_SECONDS"),
    *("TORCH_NCCL_TIMEOUT", "TORCH_DISTRIBUTED_TIMEOUT", "TORCH_DIST_TIMEOUT", "DDP_TIMEOUT"),
)
OF_NCCL = [name for name, row in known().items() if row.of_nccl]
Claim = tuple[Callable[[], str], dict[str, str]]
CLAIMS: dict[str, Claim] = {
    "nothing set": (join_file, {}),
    "phantom timeouts": (join_file, dict.fromkeys(PHANTOMS, "7")),
    "barrier yes": (join_file, {"TORCH_DIST_INIT_BARRIER": "yes"}),
    "barrier 1": (join_file, {"TORCH_DIST_INIT_BARRIER": "1"}),
    "lazy maybe": (join_file, {"TORCH_GLOO_LAZY_INIT": "maybe"}),
    "lazy True": (join_file, {"TORCH_GLOO_LAZY_INIT": "True"}),
    "gloo eth99": (join_file, {"GLOO_SOCKET_IFNAME": "eth99"}),
    "gloo blank": (join_file, {"GLOO_SOCKET_IFNAME": "lo, lo"}),
    "nccl eth99": (join_file, {"NCCL_SOCKET_IFNAME": "eth99"}),
    "transport tcp": (join_file, {"GLOO_DEVICE_TRANSPORT": "tcp"}),
    "transport TCP": (join_file, {"GLOO_DEVICE_TRANSPORT": "TCP"}),
    "recorder size abc": (join_file, {"TORCH_FR_BUFFER_SIZE": "abc"}),
    "recorder size empty": (join_file, {"TORCH_FR_BUFFER_SIZE": ""}),
    "recorder stack maybe": (join_file, {"TORCH_FR_CPP_STACK": "maybe"}),
    "recorder old size abc": (join_file, {"TORCH_NCCL_TRACE_BUFFER_SIZE": "abc"}),
    "recorder size 10": (join_file, {"TORCH_FR_BUFFER_SIZE": "10"}),
    "debug 1": (set_debug_level, {"TORCH_DISTRIBUTED_DEBUG": "1"}),
    "debug empty": (set_debug_level, {"TORCH_DISTRIBUTED_DEBUG": ""}),
    "debug info": (set_debug_level, {"TORCH_DISTRIBUTED_DEBUG": "info"}),
    "ddp DETAIL": (build_ddp, {"TORCH_DISTRIBUTED_DEBUG": "DETAIL"}),
    "ddp INFO": (build_ddp, {"TORCH_DISTRIBUTED_DEBUG": "INFO"}),
    "alone": (join_env, env(0)),
    "agent store True": (join_env, env(DEAF, TORCHELASTIC_USE_AGENT_STORE="True")),
    "agent store true": (join_env, env(0, TORCHELASTIC_USE_AGENT_STORE="true")),
    "rank outside": (join_env, env(DEAF, RANK="1")),
    "others missing": (join_env, env(0, WORLD_SIZE="4")),
    "port 0 of two": (join_env, env(0, RANK="1", WORLD_SIZE="2")),
    "nccl maybe": (join_file, dict.fromkeys(OF_NCCL, "maybe")),
    "port 70000": (join_env, env(70000)),
    "port http": (join_env, env(0, MASTER_PORT="http")),
    "address with scheme": (join_env, env(0, MASTER_ADDR="http://127.0.0.1")),
    "no rank": (join_env, env(0, RANK="")),
    "torchrun plain": (parse_torchrun, {}),
    "torchrun MASTER_PORT": (parse_torchrun, {"MASTER_PORT": "29777", "NPROC_PER_NODE": "3"}),
    "torchrun PET": (parse_torchrun, {"PET_NPROC_PER_NODE": "3", "PET_STANDALONE": "1"}),
    "torchrun PET_NPROC": (parse_torchrun, {"PET_NPROC": "3"}),
    "torchrun standalone true": (parse_torchrun, {"PET_STANDALONE": "true"}),
    "node 3 of 2": (meet_other_nodes, {"PET_NODE_RANK": "3", "PET_NNODES": "2"}),
    "threads of MKL": (count_threads, {"OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "1"}),
    "torchrun values": (values_in_torchrun, {}),
    "torchrun program": (program_of_torchrun, {"PYTHON_EXEC": "/nowhere/python"}),
    "torchrun options": (options_of_torchrun, {}),
    "small shm": (share_memory, {}),
    "few files": (lambda: in_a_child(limited(*FILES), lambda: hand_over(200, 1)), {}),
    "many files": (lambda: hand_over(200, 1), {}),
    "small files": (lambda: in_a_child(limited(*SIZE), lambda: hand_over(1, 32 << 20)), {}),
    "large files": (lambda: hand_over(1, 32 << 20), {}),
    "few processes": (lambda: join_with(as_another_user(1)), {}),
    "many processes": (lambda: join_with(as_another_user(4096)), {}),
    "few tasks": (lambda: join_in_a_group(2), {}),
    "many tasks": (lambda: join_in_a_group(4096), {}),
    "nccl without GPUs": (join_nccl, {}),
    **{
        f"devices {value!r}": (parse_devices, {"CUDA_VISIBLE_DEVICES": value})
        for value in (
            *("", "-1", "all", "0", "0,1", "0, 1,", "2,1", "0,0", "0,-1,1", "0 1", "1gpu"),
            *("GPU-a,GPU-b", "GPU-a,GPU-a"),
        )
    },
}
MAY_HANG = {
    *("recorder size abc", "recorder size empty", "recorder stack maybe", "recorder old size abc"),
    *("agent store True", "rank outside", "others missing", "address with scheme"),
    "port 0 of two",
    "node 3 of 2",
}


def perform(claim: Claim, report: Path) -> int:
    """Start the child; its process id."""
    pid = os.fork()
    if pid:
        return pid
    perform_it, variables = claim
    os.environ.update({**HEALTHY, **variables})
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        outcome = perform_it()
    except Exception as error:
        outcome = f"{type(error).__name__}: {error}"
    report.write_text(outcome)
    os._exit(0)


def has_ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def outcome_of(pid: int, report: Path) -> str:
    hangs = not has_ended(pid)
    if hangs:
        os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    if hangs:
        return "hangs"
    return signal.Signals(os.WTERMSIG(status)).name if status else report.read_text()


def main() -> None:
    reports = {name: FOLDER / f"{number}.txt" for number, name in enumerate(CLAIMS)}
    children = {name: perform(claim, reports[name]) for name, claim in CLAIMS.items()}
    try:
        deadline = time.monotonic() + DEADLINE
        must_end = [pid for name, pid in children.items() if name not in MAY_HANG]
        while time.monotonic() < deadline and not all(map(has_ended, must_end)):
            time.sleep(0.05)
        time.sleep(SECONDS)
    finally:
        outcomes = {name: outcome_of(pid, reports[name]) for name, pid in children.items()}
    print(json.dumps({name: (CLAIMS[name][1], outcomes[name]) for name in CLAIMS}))


if __name__ == "__main__":
    main()
