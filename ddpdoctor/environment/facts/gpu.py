"""NVIDIA GPUs, by nvidia-smi: CUDA is not touched, for that would spoil a later fork."""

from __future__ import annotations

import csv
import os
import re
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path

from ddpdoctor.environment.facts.machine import Machine, NoAnswer
from ddpdoctor.environment.model import Absent, DriverFailure, Gpu

_FIELDS = "index,name,uuid,memory.total,compute_mode,mig.mode.current,driver_version"
_SECONDS = 20.0
_NO_TOOL = Absent(absent="no nvidia-smi in PATH and no /dev/nvidia* device")
_XID = re.compile(r"NVRM: Xid .*")
_LAST_XIDS = 8
_PCI_BRIDGE = "0x0604"
_DISPLAY, _NVIDIA = "0x03", "0x10de"
_COMMON_SPACE = 256  # extended capabilities begin behind it, and only root may read them
_ACS = 0x000D
_CUDA_OF_DRIVER = re.compile(r"CUDA Version:\s*([0-9.]+)")


def gpus(machine: Machine) -> tuple[Gpu, ...] | DriverFailure | Absent:
    """All GPUs of this machine, whatever CUDA_VISIBLE_DEVICES hides. Raises NoAnswer."""
    tool = _tool(machine)
    if tool is None:
        return _NO_TOOL
    try:
        return _listed(machine, tool)
    except NoAnswer as error:
        said = machine.redactor.text(str(error))
        if _has_one(machine):
            return DriverFailure(error=said)
        return Absent(absent=f"no NVIDIA GPU is on the PCI bus, and {said}")


def _has_one(machine: Machine) -> bool:
    """Whether the kernel sees a graphics card of NVIDIA's, or its driver has made a device."""
    if any((machine.root / "dev").glob("nvidia[0-9]*")):
        return True
    for device in (machine.root / "sys/bus/pci/devices").glob("*"):
        try:
            kind, vendor = (device / "class").read_text(), (device / "vendor").read_text()
        except OSError:
            continue  # it is being taken out
        if kind.startswith(_DISPLAY) and vendor.strip() == _NVIDIA:
            return True
    return False


def _listed(machine: Machine, tool: str) -> tuple[Gpu, ...] | Absent:
    output = _say(machine, tool, f"--query-gpu={_FIELDS}", "--format=csv,noheader,nounits")
    if "No devices were found" in output:
        return Absent(absent="nvidia-smi finds no devices")
    found = _CUDA_OF_DRIVER.search(_say(machine, tool))
    busy = _processes(machine, tool)
    health = _health(machine, tool)
    return tuple(
        _gpu(row, found[1] if found else None, busy, health)
        for row in csv.reader(output.splitlines(), skipinitialspace=True)
    )


def topology(machine: Machine) -> tuple[str, ...] | Absent:
    """How GPUs and network cards are connected. Raises NoAnswer."""
    tool = _tool(machine)
    if tool is None:
        return _NO_TOOL
    try:
        said = _say(machine, tool, "topo", "-m")
    except NoAnswer:
        if _has_one(machine):
            raise
        return Absent(absent="no NVIDIA GPU is on the PCI bus")
    lines = re.sub(r"\x1b\[[0-9;]*m", "", said).splitlines()
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


def _health(machine: Machine, tool: str) -> dict[str, tuple[str, int]]:
    """State of the fabric manager and uncorrected errors of each GPU, by its UUID."""
    fields = "uuid,fabric.state,ecc.errors.uncorrected.volatile.total"
    status, said, _ = machine.ask([tool, f"--query-gpu={fields}", "--format=csv,noheader"])
    if status:
        return {}  # an older driver, which does not know these
    rows = (row for row in csv.reader(said.splitlines(), skipinitialspace=True) if len(row) == 3)
    return {
        uuid: ("" if state.startswith("[") or state == "N/A" else state, _number(errors))
        for uuid, state, errors in rows
    }


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def xids(machine: Machine) -> tuple[str, ...] | Absent:
    """What the driver says of faults in the kernel's log. Raises OSError if it may not be read."""
    if _tool(machine) is None:
        return _NO_TOOL
    log = os.open(machine.root / "dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    found = []
    try:
        for record in _records(log):
            if xid := _XID.search(record):
                found.append(xid[0])
    finally:
        os.close(log)
    return tuple(found[-_LAST_XIDS:])


def _records(log: int) -> Iterator[str]:
    while True:
        try:
            record = os.read(log, 1 << 14)
        except BlockingIOError:
            return
        except BrokenPipeError:  # it was overwritten while we read: the next one is whole again
            continue
        if not record:
            return
        yield from record.decode(errors="replace").splitlines()


def redirecting_bridges(machine: Machine) -> tuple[str, ...] | Absent:
    """PCI bridges with ACS source validation. Raises NoAnswer where only root may look."""
    if _tool(machine) is None:
        return _NO_TOOL
    return tuple(
        device.name
        for device in sorted((machine.root / "sys/bus/pci/devices").glob("*"))
        if (device / "class").read_text().startswith(_PCI_BRIDGE) and _redirects(device / "config")
    )


def _redirects(config: Path) -> bool:
    """Whether the bit is set in its ACS capability (PCI Express base specification, 7.7.11)."""
    space = config.read_bytes()
    if len(space) <= _COMMON_SPACE:
        raise NoAnswer("only root may read the PCI bridges' settings")
    at = _COMMON_SPACE
    while 0 < at <= len(space) - 8:
        (header,) = struct.unpack_from("<I", space, at)
        if header & 0xFFFF == _ACS:
            (control,) = struct.unpack_from("<H", space, at + 6)
            return bool(control & 1)
        at = header >> 20
    return False


def _gpu(
    row: list[str],
    cuda: str | None,
    busy: dict[str, list[int]],
    health: dict[str, tuple[str, int]],
) -> Gpu:
    if len(row) != len(_FIELDS.split(",")):
        raise NoAnswer(f"nvidia-smi answered what it was not asked: {','.join(row)}")
    index, name, uuid, memory, mode, mig, driver = row
    fabric, uncorrected = health.get(uuid, ("", 0))
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
        fabric=fabric,
        uncorrected=uncorrected,
    )
