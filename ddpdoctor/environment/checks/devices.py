"""GPUs, and what CUDA_VISIBLE_DEVICES makes of them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ddpdoctor.catalog import Finding
from ddpdoctor.environment.checks.finding import finding, setting, unset
from ddpdoctor.environment.checks.job import local_ranks
from ddpdoctor.environment.model import Environment, Torch

_ORDINAL = re.compile(r"\s*[+-]?[0-9]+")


def hidden(environment: Environment) -> Iterator[Finding]:
    """DDP713: CUDA_VISIBLE_DEVICES hides devices that it seems to name, or all of them."""
    value = environment.value("CUDA_VISIBLE_DEVICES")
    if value is None:
        return
    present = len(environment.gpus) if isinstance(environment.gpus, tuple) else None
    problem = _problem(value, present)
    if problem is None:
        return
    yield finding(
        "DDP713",
        "warning" if present else "info",
        f"{setting('CUDA_VISIBLE_DEVICES', value)} {problem}",
        "List each device once, by number or by UUID: CUDA_VISIBLE_DEVICES=0,1",
        notes=(
            f"NVIDIA GPUs installed: {present}"
            if present
            else "harmless here: no NVIDIA GPU is seen",
        ),
        commands=unset("CUDA_VISIBLE_DEVICES"),
    )


def _problem(value: str, present: int | None) -> str | None:
    """What PyTorch and CUDA make of the list, if it is not what it says."""
    elements = value.split(",")
    if value.startswith(("GPU-", "MIG-")):
        twice = next((one for one in elements if elements.count(one) > 1), None)
        return None if twice is None else f"names {twice[:12]} twice: no GPU is left"
    ordinals: list[int] = []
    for position, element in enumerate(elements):
        match = _ORDINAL.match(element)
        ordinal = int(match[0][:9]) if match else -1
        if ordinal in ordinals:
            return f"names device {ordinal} twice: no GPU is left"
        if ordinal < 0 or (present and ordinal >= present):
            return _cut_off(elements, position)
        if match and element[match.end() :].strip():
            return f"is read as device {ordinal} where it says {element.strip()!r}"
        ordinals.append(ordinal)
    return None


def _cut_off(elements: list[str], position: int) -> str | None:
    """The list ends at the first element that is no device of this machine."""
    if position == 0:
        return "hides every GPU"
    if not "".join(elements[position:]).strip():
        return None  # a comma at the end hides nothing
    return f"hides the last {len(elements) - position} of its {len(elements)} devices"


def too_few(environment: Environment) -> Iterator[Finding]:
    """DDP106: more ranks on this machine than GPUs that they can see."""
    ranks = local_ranks(environment)
    if not isinstance(environment.torch, Torch) or not ranks:
        return
    visible = environment.torch.visible_gpus
    if isinstance(visible, int) and 0 < visible < ranks:
        yield finding(
            "DDP106",
            "warning",
            f"{ranks} ranks on this machine see {visible} GPU{'s' * (visible > 1)}",
            f"Start {visible} ranks per node: torchrun --nproc-per-node={visible}",
            notes=(
                "NCCL refuses two ranks on one device",
                "ranks that train on CPUs do not mind",
            ),
        )
