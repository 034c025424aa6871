"""Who launched this process, and with which numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ddpdoctor.catalog import Finding
from ddpdoctor.environment.checks.finding import finding, setting, unset
from ddpdoctor.environment.checks.job import spans_nodes
from ddpdoctor.environment.checks.values import misread_names
from ddpdoctor.environment.model import (
    TORCHRUN_PORT,
    Absent,
    Environment,
    Kernel,
    Launcher,
    Listener,
    Master,
    Unknown,
)

_ENV_RENDEZVOUS = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def rank_outside_world(environment: Environment) -> Iterator[Finding]:
    """DDP105: a rank that no world of this size has."""
    rank, world = environment.integer("RANK"), environment.integer("WORLD_SIZE")
    if rank is None or world is None or 0 <= rank < world:
        return
    yield finding(
        "DDP105",
        "error",
        f"RANK={rank} and WORLD_SIZE={world}: ranks go from 0 to WORLD_SIZE - 1",
        "Let a launcher set them: torchrun --nproc-per-node=N train.py",
        notes=("init_process_group does not name the mistake: it times out, or fails in gloo",),
        commands=unset("RANK", "WORLD_SIZE"),
    )


def incomplete(environment: Environment) -> Iterator[Finding]:
    """DDP105: a part of what env:// reads, in a process that no launcher has started."""
    present = [name for name in _ENV_RENDEZVOUS if environment.value(name) is not None]
    if environment.launchers or not {"RANK", "WORLD_SIZE"} & set(present):
        return
    missing = [name for name in _ENV_RENDEZVOUS if name not in present]
    if not missing:
        return
    yield finding(
        "DDP105",
        "warning",
        f"{' and '.join(present[:2])} without {missing[0]}",
        "Let a launcher set them all: torchrun --nproc-per-node=N train.py",
        notes=(
            f"init_process_group raises: environment variable {missing[0]} expected, but not set",
            "torchrun does not mind: it sets its own",
        ),
        commands=unset(*present),
    )


def local_rank_outside(environment: Environment) -> Iterator[Finding]:
    """DDP105: a local rank that no node of this size has."""
    rank = environment.integer("LOCAL_RANK")
    size = environment.integer("LOCAL_WORLD_SIZE")
    if rank is None or size is None or 0 <= rank < size:
        return
    yield finding(
        "DDP105",
        "warning",
        f"LOCAL_RANK={rank} and LOCAL_WORLD_SIZE={size}: local ranks are 0 to {size - 1}",
        "Let a launcher set them: torchrun --nproc-per-node=N train.py",
        notes=(f"cuda:{rank} is a device that a node of {size} ranks need not have",),
        commands=unset("LOCAL_RANK", "LOCAL_WORLD_SIZE"),
    )


def node_rank_outside(environment: Environment) -> Iterator[Finding]:
    """DDP105: a node of torchrun's that no job of so many nodes has."""
    rank = environment.integer("PET_NODE_RANK")
    most = (environment.value("PET_NNODES") or "").rpartition(":")[2]  # "1:4" is elastic
    if rank is None or not re.fullmatch("[1-9][0-9]{0,8}", most) or 0 <= rank < int(most):
        return
    yield finding(
        "DDP105",
        "warning",
        f"PET_NODE_RANK={rank} and PET_NNODES={most}: nodes go from 0 to {int(most) - 1}",
        "Number the nodes from 0: one torchrun on each, with its own --node-rank.",
        notes=(
            "read by torchrun: --node-rank and --nnodes, where the command line does not say",
            "without --rdzv-backend it waits for a node 0 that may never come, then fails",
        ),
        commands=unset("PET_NODE_RANK", "PET_NNODES"),
    )


def outside_srun(environment: Environment) -> Iterator[Finding]:
    """DDP105: a Slurm job of several tasks, seen from its batch script."""
    tasks = environment.integer("SLURM_NTASKS")
    if environment.launchers or environment.value("SLURM_JOB_ID") is None or not tasks:
        return
    if tasks < 2:
        return
    yield finding(
        "DDP105",
        "info",
        f"this is the batch script of a Slurm job of {tasks} tasks, not one of its tasks",
        "Start the script with srun, or one torchrun per node.",
        notes=(
            "`python train.py` here is one process; a script that reads SLURM_NTASKS then waits"
            f" for {tasks - 1} others",
            "harmless if srun starts the ranks",
        ),
        commands=("srun python train.py",),
    )


def set_by_hand(environment: Environment) -> Iterator[Finding]:
    """DDP105: a world of several ranks that nobody starts."""
    world, rank = environment.integer("WORLD_SIZE"), environment.integer("RANK")
    if environment.launchers or world is None or world < 2 or not 0 <= (rank or 0) < world:
        return
    elsewhere = isinstance(environment.master, Master) and not environment.master.local
    started_here = (
        environment.value("LOCAL_RANK") is not None
        or "Kubernetes" in environment.context
        or elsewhere  # started by hand on each host: whose shell would export another machine?
    )
    yield finding(
        "DDP105",
        "info" if started_here else "warning",
        f"WORLD_SIZE={world}, and no launcher is seen that would start {world} ranks",
        "Do not export RANK and WORLD_SIZE; start with torchrun --nproc-per-node=N train.py",
        notes=(
            f"a script started now waits for {world - 1} others, and fails after its timeout",
            "harmless if a launcher of your own has set them, or an operator of Kubernetes"
            if started_here
            else "torchrun ignores what is exported, and sets its own",
        ),
        commands=unset("RANK", "WORLD_SIZE"),
        certainty="evidence",
    )


def leaked(environment: Environment) -> Iterator[Finding]:
    """DDP706: torchrun's variables in a process that torchrun does not run."""
    if environment.value("TORCHELASTIC_USE_AGENT_STORE") == "True":
        yield from _no_store(environment)
    if environment.value("TORCHELASTIC_RUN_ID") is not None and environment.value("RANK") is None:
        yield finding(
            "DDP706",
            "warning",
            "TORCHELASTIC_RUN_ID is set, but torchrun has not started this process",
            "Unset it: it came from the environment of a torchrun rank.",
            notes=(
                "torchrun gives its ranks RANK as well, and RANK is not set",
                "is_torchelastic_launched() looks at TORCHELASTIC_RUN_ID alone",
            ),
            commands=unset("TORCHELASTIC_RUN_ID"),
        )


def _no_store(environment: Environment) -> Iterator[Finding]:
    port = environment.integer("MASTER_PORT")
    master = environment.master
    if isinstance(master, Absent):
        reason = "torchrun sets where the store is as well, and MASTER_ADDR is not set"
    elif isinstance(master, Unknown) or not master.local or port is None:
        return  # the store may well be on another machine
    elif isinstance(environment.listeners, Unknown) or _listener(environment, port):
        return
    else:
        reason = f"nothing listens on {master.address}:{port}, where the store would have to be"
    yield finding(
        "DDP706",
        "warning",
        "TORCHELASTIC_USE_AGENT_STORE=True, but no agent hosts a store",
        "Unset it: it came from the environment of a torchrun rank.",
        notes=(
            reason,
            "rank 0 will not host a store either: every rank fails to connect, after the timeout",
        ),
        commands=unset("TORCHELASTIC_USE_AGENT_STORE"),
    )


def port_taken(environment: Environment) -> Iterator[Finding]:
    """DDP104: rank 0 could not listen where the variables, or torchrun's default, send it."""
    number, rank = environment.integer("MASTER_PORT"), environment.integer("RANK")
    elsewhere = isinstance(environment.master, Master) and not environment.master.local
    if environment.launchers or elsewhere or rank not in (None, 0):
        return
    listener = _listener(environment, TORCHRUN_PORT if number is None else number)
    if listener is None:
        return
    default = "" if number is not None else " (torchrun's default)"
    yield finding(
        "DDP104",
        "warning" if number is not None else "info",
        f"port {listener.port}{default} is already taken by {listener.process}",
        "End that process if it is left over, or let torchrun take a free port.",
        notes=(
            ("rank 0 will fail with EADDRINUSE",)
            if number is not None
            else (
                "a torchrun of several nodes that is told nothing else fails with EADDRINUSE",
                "harmless on one node: from torch 2.13 on torchrun takes a free port there",
            )
        ),
        commands=("torchrun --standalone --nproc-per-node=N train.py",),
    )


def low_port(environment: Environment) -> Iterator[Finding]:
    """DDP104: a port on which this user may not listen, or that the kernel gives to others."""
    port, kernel = environment.integer("MASTER_PORT"), environment.kernel
    elsewhere = isinstance(environment.master, Master) and not environment.master.local
    if port is None or isinstance(kernel, Unknown) or elsewhere or environment.launchers:
        return
    if isinstance(kernel.lowest_port, int) and 0 < port < kernel.lowest_port:
        yield from _reserved(port, kernel)
    elif isinstance(kernel.outgoing_ports, tuple):
        first, last = kernel.outgoing_ports
        if first <= port <= last:
            yield finding(
                "DDP104",
                "info",
                f"the kernel gives MASTER_PORT={port} to outgoing connections too",
                f"Take a port below {first}.",
                notes=(
                    f"net.ipv4.ip_local_port_range is {first} to {last}",
                    "harmless as a rule: now and then somebody else has it",
                ),
            )


def no_port(environment: Environment) -> Iterator[Finding]:
    """DDP104: port 0, on which rank 0 would listen anywhere, and nobody would find it."""
    world = environment.integer("WORLD_SIZE")
    if environment.integer("MASTER_PORT") != 0 or world is None or world < 2:
        return
    yield finding(
        "DDP104",
        "error",
        f"MASTER_PORT=0, and {world} ranks are to meet there",
        "Take a port from 1024 to 32767, the same for all ranks.",
        notes=(
            "rank 0 listens on a port of the kernel's choice, the others connect to port 0",
            "all of them fail, after the timeout; a single rank would not mind",
        ),
    )


def _reserved(port: int, kernel: Kernel) -> Iterator[Finding]:
    yield finding(
        "DDP104",
        "info" if kernel.privileged else "error",
        f"MASTER_PORT={port} is below {kernel.lowest_port}, where ordinary users may not listen",
        "Take a port from 1024 to 32767.",
        notes=(
            ("harmless for you: this process may listen there",)
            if kernel.privileged
            else ("rank 0 fails with: Permission denied",)
        ),
    )


def unresolved_master(environment: Environment) -> Iterator[Finding]:
    """DDP108: a MASTER_ADDR that leads nowhere."""
    master = environment.master
    if not isinstance(master, Master) or not isinstance(master.addresses, Unknown):
        return
    if _host_is_misread(environment):
        return  # a value that is no name has a finding of its own
    yield finding(
        "DDP108",
        "error",
        f"{setting('MASTER_ADDR', master.address)} does not resolve on this machine",
        "Mend the name, or use the address of the first node.",
        notes=(
            master.addresses.unknown,
            "every rank fails to connect, after the timeout, and torch does not say why",
        ),
        commands=("getent hosts NAME",),
    )


def _host_is_misread(environment: Environment) -> bool:
    return "MASTER_ADDR" in misread_names(environment)


def port_ignored(environment: Environment) -> Iterator[Finding]:
    """DDP104: advice that does not hold, a MASTER_PORT exported for torchrun."""
    value = environment.value("MASTER_PORT")
    if value is None or environment.launchers or environment.value("RANK") is not None:
        return
    yield finding(
        "DDP104",
        "info",
        f"torchrun will ignore {setting('MASTER_PORT', value)}",
        "Use --standalone, --rdzv-endpoint=HOST:PORT or --master-port with torchrun.",
        notes=("harmless: mp.spawn, and ranks that are started by hand, do read it",),
    )


def interpreter(environment: Environment) -> Iterator[Finding]:
    """DDP703: PYTHON_EXEC, in whose place torchrun would start something else than this Python."""
    variable, program = environment.variable("PYTHON_EXEC"), environment.interpreter
    if variable is None or variable.redacted or isinstance(program, Unknown):
        return
    if program == environment.python.executable:
        return
    missing = isinstance(program, Absent)
    yield finding(
        "DDP703",
        "warning" if missing else "info",
        f"{setting(variable.name, variable.value)} is "
        + ("no program here" if missing else "another interpreter than this one"),
        "Remove it, unless your script is meant for that interpreter.",
        notes=(
            "torchrun starts every rank with it, in place of the Python that runs torchrun",
            "each of them fails: No such file or directory"
            if missing
            else f"harmless if you meant it; this one is {environment.python.executable}",
        ),
        commands=unset(variable.name),
    )


def loopback_master(environment: Environment) -> Iterator[Finding]:
    """DDP108: several nodes, of which each looks for the master on itself."""
    master = environment.master
    if isinstance(master, Master) and master.loopback and spans_nodes(environment):
        yield finding(
            "DDP108",
            "warning",
            f"{setting('MASTER_ADDR', master.address)} is this machine itself, on every node",
            "Name the first node by an address that the others reach.",
            notes=("the job runs on several nodes",),
            certainty="evidence",
        )


def double_launch(environment: Environment) -> Iterator[Finding]:
    """DDP114: one launcher started several others, and each starts a job of its own."""
    torchrun, outer = _two_layers(environment)
    agents = environment.integer("GROUP_WORLD_SIZE")
    if torchrun is None or outer is None or agents is None or outer.size in (None, 1, agents):
        return
    yield finding(
        "DDP114",
        "warning",
        f"{outer.name} started torchrun {outer.size} times, but this job has {agents} of them",
        f"Start one torchrun per node with {outer.name}, all with one --rdzv-id and endpoint.",
        notes=(
            f"GROUP_WORLD_SIZE={agents}, WORLD_SIZE={torchrun.size}, {outer.name}: {outer.size}",
            *(("each of them trains alone, on the same devices",) if agents == 1 else ()),
        ),
        certainty="evidence",
    )


def disagreeing(environment: Environment) -> Iterator[Finding]:
    """DDP707: RANK or WORLD_SIZE is not what the launcher says."""
    rank, world = environment.integer("RANK"), environment.integer("WORLD_SIZE")
    torchrun, outer = _two_layers(environment)
    if torchrun or outer is None or outer.rank is None or outer.size is None or outer.size < 2:
        return
    # A launcher that starts one process per node, which then spawns, has a multiple of its size.
    wrong_world = world is not None and world % outer.size != 0
    wrong_rank = rank is not None and world in (None, outer.size) and rank != outer.rank
    if wrong_world or wrong_rank:
        yield finding(
            "DDP707",
            "warning",
            f"{outer.name} says rank {outer.rank} of {outer.size}, the variables say otherwise",
            f"Take RANK and WORLD_SIZE from {outer.name}'s variables in every process.",
            notes=(
                f"RANK={environment.value('RANK')}, WORLD_SIZE={environment.value('WORLD_SIZE')}",
                "env:// reads these two alone; once exported, they are the same in all ranks",
            ),
        )


def _two_layers(environment: Environment) -> tuple[Launcher | None, Launcher | None]:
    torchrun = next((one for one in environment.launchers if one.name == "torchrun"), None)
    # accelerate and deepspeed start ranks instead of torchrun, not around it.
    inner = ("torchrun", "accelerate", "deepspeed")
    outer = next((one for one in environment.launchers if one.name not in inner), None)
    return torchrun, outer


def _listener(environment: Environment, port: int) -> Listener | None:
    if not isinstance(environment.listeners, tuple):
        return None
    return next((one for one in environment.listeners if one.port == port), None)
