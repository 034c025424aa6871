"""NVIDIA GPUs, by nvidia-smi: CUDA is not touched, for that would spoil a later fork."""

from __future__ import annotations

import csv
import re
import shutil

from ddpdoctor.environment.facts.machine import Machine, NoAnswer
from ddpdoctor.environment.model import Absent, Gpu

_FIELDS = "index,name,uuid,memory.total,compute_mode,mig.mode.current,driver_version"
_SECONDS = 20.0
_NO_TOOL = Absent(absent="no nvidia-smi in PATH and no /dev/nvidia* device")
_CUDA_OF_DRIVER = re.compile(r"CUDA Version:\s*([0-9.]+)")


def gpus(machine: Machine) -> tuple[Gpu, ...] | Absent:
    """All GPUs of this machine, whatever CUDA_VISIBLE_DEVICES hides. Raises NoAnswer."""
    tool = _tool(machine)
    if tool is None:
        return _NO_TOOL
    output = _say(machine, tool, f"--query-gpu={_FIELDS}", "--format=csv,noheader,nounits")
    if "No devices were found" in output:
        return Absent(absent="nvidia-smi finds no devices")
    found = _CUDA_OF_DRIVER.search(_say(machine, tool))
    busy = _processes(machine, tool)
    return tuple(
        _gpu(row, found[1] if found else None, busy)
        for row in csv.reader(output.splitlines(), skipinitialspace=True)
    )


def topology(machine: Machine) -> tuple[str, ...] | Absent:
    """How GPUs and network cards are connected. Raises NoAnswer."""
    tool = _tool(machine)
    if tool is None:
        return _NO_TOOL
    lines = re.sub(r"\x1b\[[0-9;]*m", "", _say(machine, tool, "topo", "-m")).splitlines()
    return tuple(line.expandtabs().rstrip() for line in lines if line.strip())


def _tool(machine: Machine) -> str | None:
    tool = shutil.which("nvidia-smi", path=machine.environ.get("PATH", ""))
    if tool is None and any((machine.root / "dev").glob("nvidia[0-9]*")):
        raise NoAnswer("there are /dev/nvidia* devices, but nvidia-smi is not in PATH")
    return tool


def _say(machine: Machine, tool: str, *arguments: str) -> str:
    status, output, errors = machine.ask([tool, *arguments], min(machine.patience, _SECONDS))
    if status and "No devices were found" not in output:
        reason = (output + errors).strip().partition("\n")[0]
        raise NoAnswer(f"nvidia-smi failed with status {status}: {reason}")
    return output


def _processes(machine: Machine, tool: str) -> dict[str, list[int]]:
    """Who computes on which GPU, by its UUID."""
    said = _say(machine, tool, "--query-compute-apps=gpu_uuid,pid", "--format=csv,noheader")
    busy: dict[str, list[int]] = {}
    for row in csv.reader(said.splitlines(), skipinitialspace=True):
        if len(row) == 2 and row[1].isdecimal():
            busy.setdefault(row[0], []).append(int(row[1]))
    return busy


def _gpu(row: list[str], cuda: str | None, busy: dict[str, list[int]]) -> Gpu:
    if len(row) != len(_FIELDS.split(",")):
        raise NoAnswer(f"nvidia-smi answered what it was not asked: {','.join(row)}")
    index, name, uuid, memory, mode, mig, driver = row
    return Gpu(
        index=int(index),
        name=name,
        uuid=uuid,
        memory_mib=int(memory) if memory.isdigit() else None,
        compute_mode=mode,
        mig=mig,
        driver=driver,
        cuda=cuda,
        others=tuple(busy.get(uuid, ())),
    )
