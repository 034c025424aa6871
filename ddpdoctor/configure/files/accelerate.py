"""accelerate: the YAML that `accelerate launch --config_file` reads."""

from __future__ import annotations

import importlib.util
from shlex import quote

from ddpdoctor.configure.files.launch_file import LaunchFile, Start, header, ranks_in_words, text
from ddpdoctor.configure.plan import Plan

PORT = 29500


def render(plan: Plan, path: str) -> str:
    """The configuration."""
    several = plan.world_size > 1
    lines = [
        header(
            f"{ranks_in_words(plan)}, started by accelerate.",
            f"{_prefix(plan)}accelerate launch --config_file {quote(path)} {quote(plan.script)}",
        ).rstrip("\n"),
        *_prefix_reason(plan),
        "compute_environment: LOCAL_MACHINE  # not SageMaker",
        *_kind(plan),
        f"num_processes: {plan.world_size}  # on all machines together; {plan.why_nproc}",
        f"num_machines: {plan.nodes}  # each starts its share of them",
        "mixed_precision: 'no'  # bf16 or fp16 once the plain run is known to be right",
        "rdzv_backend: static  # all machines are here from the start" if several else "",
        *_machines(plan),
    ]
    return "\n".join(line for line in lines if line) + "\n"


def _kind(plan: Plan) -> list[str]:
    if plan.device == "cpu":
        kind = (
            "distributed_type: MULTI_GPU  # the only one for which accelerate starts torchrun"
            if plan.world_size > 1
            else "distributed_type: 'NO'  # a single process"
        )
        return [kind, "use_cpu: true  # no rank touches a GPU"]
    if plan.world_size == 1:
        return [
            "distributed_type: 'NO'  # a single GPU needs no process group",
            "use_cpu: false  # it trains on the GPU",
        ]
    return [
        "distributed_type: MULTI_GPU  # one process for each GPU, in one group",
        "use_cpu: false  # each rank has a GPU",
        "gpu_ids: all  # accelerate would overwrite CUDA_VISIBLE_DEVICES with anything else",
    ]


def _trains_alone(plan: Plan) -> bool:
    return plan.device == "cpu" and plan.world_size > 1


def _prefix(plan: Plan) -> str:
    threads = f"OMP_NUM_THREADS={plan.threads} "
    return f"{threads}ACCELERATE_USE_CPU=true " if _trains_alone(plan) else threads


def _prefix_reason(plan: Plan) -> list[str]:
    threads = [
        f"# OMP_NUM_THREADS: {plan.why_threads};",
        "# accelerate takes it from there, and from no line of this file.",
    ]
    if not _trains_alone(plan):
        return threads
    return [
        *threads,
        "# Without ACCELERATE_USE_CPU each rank would train alone (measured, accelerate 1.15);",
        "# with distributed_type MULTI_CPU accelerate starts a single one unless it gets an MPI",
        "# hostfile.",
    ]


def _machines(plan: Plan) -> list[str]:
    if plan.nodes == 1:
        # 0: a free port, so that a second job on this machine does not fail for a port in use.
        return ["main_process_port: 0  # a free one"] if plan.world_size > 1 else []
    return [
        "machine_rank: 0  # 1, 2, ... on the other machines: --machine_rank on the command line",
        f"main_process_ip: {text(plan.master)}  # the first machine, as the others reach it",
        f"main_process_port: {PORT}  # the same on all machines",
        "same_network: true  # the address above is one that all of them reach",
    ]


def start(plan: Plan, path: str, script: tuple[str, ...]) -> Start:
    """`accelerate launch --config_file FILE SCRIPT`."""
    environ = {"ACCELERATE_USE_CPU": "true"} if _trains_alone(plan) else {}
    environ["OMP_NUM_THREADS"] = str(plan.threads)
    launch = (plan.python, "-m", "accelerate.commands.launch", "--config_file", path)
    return Start((*launch, *script), environ)


def refuse(plan: Plan) -> str | None:
    """Several machines are not here, or accelerate is not."""
    if plan.nodes > 1:
        return f"{plan.nodes} machines are not here"
    return None if importlib.util.find_spec("accelerate") else "accelerate is not installed here"


FILE = LaunchFile("accelerate", "accelerate.yaml", render, start, refuse)
