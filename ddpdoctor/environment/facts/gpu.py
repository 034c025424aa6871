"""NVIDIA GPUs, by nvidia-smi: CUDA is not touched, for that would spoil a later fork."""

from __future__ import annotations

import csv
import shutil

from ddpdoctor.environment.facts.machine import Machine, NoAnswer
from ddpdoctor.environment.model import Absent, Gpu

_FIELDS = "index,name,uuid,memory.total,compute_mode,mig.mode.current,driver_version"
_SECONDS = 20.0


def gpus(machine: Machine) -> tuple[Gpu, ...] | Absent:
    """All GPUs of this machine, whatever CUDA_VISIBLE_DEVICES hides. Raises NoAnswer."""
    tool = shutil.which("nvidia-smi", path=machine.environ.get("PATH", ""))
    if tool is None:
        if any((machine.root / "dev").glob("nvidia[0-9]*")):
            raise NoAnswer("there are /dev/nvidia* devices, but nvidia-smi is not in PATH")
        return Absent(absent="no nvidia-smi in PATH and no /dev/nvidia* device")
    status, output, errors = machine.ask(
        [tool, f"--query-gpu={_FIELDS}", "--format=csv,noheader,nounits"],
        min(machine.patience, _SECONDS),
    )
    if "No devices were found" in output:
        return Absent(absent="nvidia-smi finds no devices")
    if status:
        reason = (output + errors).strip().partition("\n")[0]
        raise NoAnswer(f"nvidia-smi failed with status {status}: {reason}")
    return tuple(_gpu(row) for row in csv.reader(output.splitlines(), skipinitialspace=True))


def _gpu(row: list[str]) -> Gpu:
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
    )
