"""mpirun: a shell script that tells torch what MPI tells its processes."""

from __future__ import annotations

import shutil
from shlex import quote

from ddpdoctor.configure.files.launch_file import LaunchFile, Start, header, ranks_in_words
from ddpdoctor.configure.plan import Plan


def render(plan: Plan, path: str) -> str:
    """The script."""
    lines = [
        "#!/bin/sh",
        header(
            f"{ranks_in_words(plan)}, started by mpirun.",
            f"sh {quote(path)} {quote(plan.script)} ARGUMENTS",
        ).rstrip("\n"),
        "# A command that fails, or a variable that is missing, ends the script.",
        "set -eu",
        "# What the ranks run, unless you say it.",
        f"[ $# -gt 0 ] || set -- {quote(plan.script)}",
        "",
        "# The interpreter that has torch here.",
        f"python=${{PYTHON:-{quote(plan.python)}}}",
        "",
        f"# All ranks: {plan.why_nproc}" + (", on each node." if plan.nodes > 1 else "."),
        f"options='-np {plan.world_size}'",
        *_hosts(plan),
        "",
        "# Open MPI binds each rank to one core, with its data-loader workers and threads.",
        "# --oversubscribe: it counts cores, not the ranks that you asked for.",
        "if mpirun --version 2>&1 | grep -q 'Open MPI'; then",
        '  options="$options --bind-to none --oversubscribe"',
        "  # It refuses to run as root, which is who you are in most containers.",
        '  if [ "$(id -u)" = 0 ]; then options="$options --allow-run-as-root"; fi',
        "fi",
        "",
        *_rendezvous(plan),
        "",
        f"# {plan.why_threads[0].upper()}{plan.why_threads[1:]}.",
        f"threads={plan.threads}",
        "",
        "# torch reads RANK, WORLD_SIZE and LOCAL_RANK, and knows nothing of MPI's own variables.",
        'exec mpirun $options env MASTER_ADDR="$master" MASTER_PORT="$port" \\',
        '  OMP_NUM_THREADS="$threads" sh -c \'',
        "    export RANK=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}",
        "    export WORLD_SIZE=${OMPI_COMM_WORLD_SIZE:-$PMI_SIZE}",
        "    export LOCAL_RANK=${OMPI_COMM_WORLD_LOCAL_RANK:-${MPI_LOCALRANKID:-0}}",
        f"    export LOCAL_WORLD_SIZE={plan.nproc}",
        '    exec "$0" "$@"\' "$python" "$@"',
    ]
    return "\n".join(lines) + "\n"


def _hosts(plan: Plan) -> list[str]:
    if plan.nodes == 1:
        return []
    return [
        "# One line per node: NAME slots=RANKS. Write this file; it cannot be known here.",
        'options="$options --hostfile hosts.txt"',
    ]


def _rendezvous(plan: Plan) -> list[str]:
    if plan.nodes == 1:
        return [
            "# Rank 0 listens here; a port that is free now, so that two jobs do not collide.",
            "master=127.0.0.1",
            'port=$("$python" -c \'import socket; s = socket.socket(); '
            's.bind(("127.0.0.1", 0)); print(s.getsockname()[1])\')',
        ]
    return [
        "# The first node of hosts.txt, by a name that the others reach: rank 0 listens there.",
        f"master={quote(plan.master)}",
        "# Below the range that kernels give to outgoing connections (32768 and up).",
        'port="${MASTER_PORT:-29500}"',
    ]


def start(plan: Plan, path: str, script: tuple[str, ...]) -> Start:
    """`sh FILE SCRIPT`."""
    return Start(("sh", path, *script))


def refuse(plan: Plan) -> str | None:
    """Several nodes are not here, or mpirun is not."""
    if plan.nodes > 1:
        return f"{plan.nodes} nodes are not here"
    return None if shutil.which("mpirun") else "mpirun is not installed here"


FILE = LaunchFile("mpirun", "mpirun.sh", render, start, refuse, executable=True)
