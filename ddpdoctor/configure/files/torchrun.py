"""torchrun: a shell script, the same one on every node."""

from __future__ import annotations

from shlex import quote

from ddpdoctor.configure.files.launch_file import LaunchFile, Start, header, ranks_in_words
from ddpdoctor.configure.plan import Plan

PORT = 29400
"""Where the agents of several nodes meet: the default port of torchrun's c10d rendezvous."""


def render(plan: Plan, path: str) -> str:
    """The script."""
    lines = [
        "#!/bin/sh",
        header(
            f"{ranks_in_words(plan)}, started by torchrun.",
            f"sh {quote(path)} {quote(plan.script)} ARGUMENTS"
            + (", on every node, within minutes of each other" if plan.nodes > 1 else ""),
        ).rstrip("\n"),
        "# A command that fails, or a variable that is missing, ends the script.",
        "set -eu",
        "# What the ranks run, unless you say it.",
        f"[ $# -gt 0 ] || set -- {quote(plan.script)}",
        "",
        "# The interpreter that has torch here; torchrun of another one would miss your packages.",
        f"python=${{PYTHON:-{quote(plan.python)}}}",
        "",
        f"# {plan.why_threads[0].upper()}{plan.why_threads[1:]}.",
        f'export OMP_NUM_THREADS="${{OMP_NUM_THREADS:-{plan.threads}}}"',
        "",
        f"# Ranks per node: {plan.why_nproc}.",
        f"options=--nproc-per-node={plan.nproc}",
        "",
        *_rendezvous(plan),
        "",
        "# exec: a signal to this script reaches torchrun, which ends its ranks.",
        'exec "$python" -m torch.distributed.run $options "$@"',
    ]
    return "\n".join(lines) + "\n"


def _rendezvous(plan: Plan) -> list[str]:
    if plan.nodes == 1:
        return [
            "# One node: torchrun takes a free port by itself, so that two jobs never collide.",
            'options="$options --standalone"',
        ]
    host = f"[{plan.master}]" if ":" in plan.master else plan.master  # an IPv6 address
    return [
        f"# All {plan.nodes} agents must come before any rank is started.",
        f'options="$options --nnodes={plan.nodes}"',
        "# c10d numbers the nodes by itself: the same command is right on each of them.",
        'options="$options --rdzv-backend=c10d"',
        "# The first node, by a name that the others reach; MASTER_ADDR would be ignored.",
        f'options="$options --rdzv-endpoint={host}:{PORT}"',
        "# What tells this job from another one on the same nodes.",
        f'options="$options --rdzv-id={quote(plan.name)}"',
    ]


def start(plan: Plan, path: str, script: tuple[str, ...]) -> Start:
    """`sh FILE SCRIPT`."""
    return Start(("sh", path, *script))


def refuse(plan: Plan) -> str | None:
    """Several nodes are not here."""
    return f"{plan.nodes} nodes are not here" if plan.nodes > 1 else None


FILE = LaunchFile("torchrun", "torchrun.sh", render, start, refuse, executable=True)
