"""Slurm: a batch script in which srun starts one task per rank."""

from __future__ import annotations

import shutil
import subprocess
from shlex import quote

from ddpdoctor.configure.files.launch_file import LaunchFile, Start, header, ranks_in_words
from ddpdoctor.configure.plan import Plan


def render(plan: Plan, path: str) -> str:
    """The script."""
    lines = [
        "#!/bin/bash",
        header(
            f"{ranks_in_words(plan).replace('this machine', 'one node')}, started by Slurm.",
            f"sbatch {quote(path)} {quote(plan.script)} ARGUMENTS",
        ).rstrip("\n"),
        "# The name in squeue, and of the file below.",
        f"#SBATCH --job-name={quote(plan.name)}",
        "# Machines, as asked for.",
        f"#SBATCH --nodes={plan.nodes}",
        f"# One task per rank ({plan.why_nproc}).",
        "# srun starts them all: torchrun inside srun would start each of them once more.",
        f"#SBATCH --ntasks-per-node={plan.nproc}",
        f"# {plan.why_threads[0].upper()}{plan.why_threads[1:]}.",
        f"#SBATCH --cpus-per-task={plan.threads}",
        *_gpus(plan),
        "# %j is the job's number: two jobs do not write into one file.",
        "#SBATCH --output=%x-%j.out",
        "# A command that fails, or a variable that is missing, ends the script.",
        "set -euo pipefail",
        "# What the ranks run, unless you say it.",
        f"[ $# -gt 0 ] || set -- {quote(plan.script)}",
        "",
        "# The interpreter that has torch, on every node.",
        f"python=${{PYTHON:-{quote(plan.python)}}}",
        "",
        "# Rank 0 is on the first node; SLURM_LAUNCH_NODE_IPADDR is where srun runs, not rank 0.",
        'MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)',
        "# By the job's number: jobs that share a node do not collide. Below 32768, from where on",
        "# kernels give ports to outgoing connections.",
        "MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))",
        "# srun does not hand --cpus-per-task on to the libraries.",
        'OMP_NUM_THREADS="${SLURM_CPUS_PER_TASK:-1}"',
        "export MASTER_ADDR MASTER_PORT OMP_NUM_THREADS",
        "",
        "# --kill-on-bad-exit: when one rank fails, the others would wait for its collectives.",
        "# --cpus-per-task: srun has not taken it from sbatch since Slurm 22.05.",
        "# The variables of a rank exist in its task alone, so they are set there.",
        'exec srun --kill-on-bad-exit=1 --cpus-per-task="${SLURM_CPUS_PER_TASK:-1}" bash -c \'',
        "    export RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS LOCAL_RANK=$SLURM_LOCALID",
        f"    export LOCAL_WORLD_SIZE={plan.nproc}",
        '    exec "$0" "$@"\' "$python" "$@"',
    ]
    return "\n".join(lines) + "\n"


def _gpus(plan: Plan) -> list[str]:
    if plan.device == "cpu":
        return []
    return [
        "# Not --gpus-per-task: each rank would see its own GPU alone, as cuda:0, and NCCL could",
        "# not use direct transfers between them.",
        f"#SBATCH --gpus-per-node={plan.nproc}",
    ]


def start(plan: Plan, path: str, script: tuple[str, ...]) -> Start:
    """`sbatch --wait FILE SCRIPT`."""
    return Start(("sbatch", "--wait", path, *script))


def refuse(plan: Plan) -> str | None:
    """Where no Slurm answers here."""
    if not shutil.which("sbatch") or not shutil.which("sinfo"):
        return "Slurm is not installed here"
    try:
        asked = subprocess.run(
            ["sinfo", "--noheader", "--format=%a"], capture_output=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return "Slurm does not answer here"
    return None if asked.returncode == 0 and b"up" in asked.stdout else "no Slurm answers here"


FILE = LaunchFile("slurm", "slurm.sh", render, start, refuse, executable=True)
