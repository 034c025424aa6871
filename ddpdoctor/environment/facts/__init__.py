"""Collects the facts: one module per kind, each a function of the machine, none imports torch."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

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
from ddpdoctor.environment.facts.machine import Machine
from ddpdoctor.environment.model import Environment, Torch


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
    in_files = machine.find(nccl_file.settings)
    torch = machine.find(software.torch)
    return Environment(
        python=software.python(machine),
        torch=torch,
        interpreter=machine.find(software.interpreter),
        packages=machine.find(software.packages),
        compilers=machine.find(software.compilers),
        accelerate=machine.find(software.accelerate_defaults),
        nccl_packages=machine.find(software.nccl_packages),
        gpus=machine.find(gpu.gpus),
        xids=machine.find(gpu.xids),
        redirecting=machine.find(gpu.redirecting_bridges),
        infiniband=machine.find(host.infiniband),
        fabric=machine.find(host.fabric),
        topology=machine.find(gpu.topology),
        kernel=machine.find(kernel.kernel),
        clock=machine.find(kernel.clock),
        container=machine.find(kernel.container),
        folder=machine.find(lambda m: folder.folder(m, checkpoints)),
        cpus=machine.find(host.cpus),
        memory=machine.find(host.memory),
        shared_memory=machine.find(host.shared_memory),
        limits=machine.find(host.limits),
        interfaces=machine.find(network.interfaces),
        hostname=machine.find(network.hostname),
        master=machine.find(network.master),
        listeners=machine.find(network.listeners),
        launchers=launcher.launchers(machine),
        context=launcher.context(machine),
        variables=variables.variables(machine, in_files),
        nccl_file=in_files,
        net_plugins=machine.find(
            lambda m: nccl_net.net_plugins(m, torch.folder if isinstance(torch, Torch) else None)
        ),
        search=machine.find(lambda m: variables.search(m, in_files)),
        unusable_files=machine.find(named_files.unusable_files),
        planned_ranks=nproc,
    )
