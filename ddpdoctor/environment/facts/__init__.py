"""Collects the facts: one module per kind, each a function of the machine, none imports torch."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ddpdoctor.environment.facts import (
    folder,
    gpu,
    host,
    kernel,
    launcher,
    named_files,
    nccl_file,
    nccl_net,
    network,
    software,
    variables,
)
from ddpdoctor.environment.facts.machine import Machine, Question
from ddpdoctor.environment.model import Absent, Environment, Torch, TorchFailure, Unknown


def collect(
    environ: Mapping[str, str] | None = None,
    root: Path = Path("/"),
    patience: float = 60.0,
    *,
    nproc: int | None = None,
    checkpoints: Path | None = None,
) -> Environment:
    """Everything that can be found out here; what cannot says why. Never raises.

    `environ` stands in for this process's environment, `root` for the folder under which /proc,
    /sys and /dev are, and `patience` is how many seconds importing torch may take.
    `nproc` is how many ranks a launch to come will start here, `checkpoints` where it will save:
    by default it is not known, and this folder is tried.
    """
    machine = Machine(os.environ.copy() if environ is None else environ, root, patience)
    # While torch is imported it takes memory and threads; GPUs when its answer is waited for.
    untouched: dict[str, Any] = {
        "cpus": machine.find(host.cpus),
        "memory": machine.find(host.memory),
        "shared_memory": machine.find(host.shared_memory),
        "limits": machine.find(host.limits),
    }
    asked = machine.find(software.ask_torch)
    try:
        meanwhile = _meanwhile(machine, checkpoints)
        torch = asked if isinstance(asked, Unknown) else machine.find(_of_torch(asked))
    finally:
        if isinstance(asked, Question):
            asked.drop()
    folder_of_torch = torch.folder if isinstance(torch, Torch) else None
    return Environment(
        **untouched,
        **meanwhile,
        torch=torch,
        net_plugins=machine.find(lambda m: nccl_net.net_plugins(m, folder_of_torch)),
        planned_ranks=nproc,
    )


def _of_torch(asked: Question) -> Callable[[Machine], Torch | TorchFailure | Absent]:
    return lambda machine: software.torch(machine, asked)


def _meanwhile(machine: Machine, checkpoints: Path | None) -> dict[str, Any]:
    """What can be found out while torch is imported."""
    in_files = machine.find(nccl_file.settings)
    return {
        "python": software.python(machine),
        "interpreter": machine.find(software.interpreter),
        "packages": machine.find(software.packages),
        "compilers": machine.find(software.compilers),
        "accelerate": machine.find(software.accelerate_defaults),
        "nccl_packages": machine.find(software.nccl_packages),
        "gpus": machine.find(gpu.gpus),
        "xids": machine.find(gpu.xids),
        "redirecting": machine.find(gpu.redirecting_bridges),
        "infiniband": machine.find(host.infiniband),
        "fabric": machine.find(host.fabric),
        "topology": machine.find(gpu.topology),
        "kernel": machine.find(kernel.kernel),
        "clock": machine.find(kernel.clock),
        "container": machine.find(kernel.container),
        "folder": machine.find(lambda m: folder.folder(m, checkpoints)),
        "interfaces": machine.find(network.interfaces),
        "hostname": machine.find(network.hostname),
        "master": machine.find(network.master),
        "listeners": machine.find(network.listeners),
        "launchers": launcher.launchers(machine),
        "context": launcher.context(machine),
        "variables": variables.variables(machine, in_files),
        "nccl_file": in_files,
        "search": machine.find(lambda m: variables.search(m, in_files)),
        "unusable_files": machine.find(named_files.unusable_files),
    }
