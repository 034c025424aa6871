"""GPUs, and what CUDA_VISIBLE_DEVICES makes of them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ddpdoctor.catalog import Finding
from ddpdoctor.environment.checks.finding import finding, setting, unset
from ddpdoctor.environment.checks.job import local_ranks
from ddpdoctor.environment.model import DriverFailure, Environment, Kernel, Torch
from ddpdoctor.environment.variables import known
from ddpdoctor.report.words import count

_WITHOUT_PEERS = "RTX 40"
"""GPUs that cannot read each other's memory, and of which older drivers say that they can."""
_HONEST_DRIVER = (550, 40, 7)
_ORDINAL = re.compile(r"\s*[+-]?[0-9]+")


def silent_driver(environment: Environment) -> Iterator[Finding]:
    """DDP725: a GPU is there, and nvidia-smi fails."""
    if isinstance(environment.gpus, DriverFailure):
        yield finding(
            "DDP725",
            "warning",
            "a GPU of NVIDIA's is here, and nvidia-smi cannot tell of it",
            "Reload the driver or reboot; in a container, start it anew with its GPUs.",
            notes=(environment.gpus.error, "ranks that train on CPUs do not mind"),
            commands=("nvidia-smi", "dmesg | grep NVRM"),
        )


def cuda_fails(environment: Environment) -> Iterator[Finding]:
    """DDP725: GPUs are here and visible, and CUDA does not start."""
    torch, gpus = environment.torch, environment.gpus
    if not isinstance(torch, Torch) or torch.cuda_failure is None:
        return
    if not isinstance(gpus, DriverFailure) and not (isinstance(gpus, tuple) and gpus):
        return
    if environment.value("CUDA_VISIBLE_DEVICES") is not None and torch.visible_gpus == 0:
        return  # they are hidden, which has a finding of its own
    if any(one.severity == "error" for one in old_driver(environment)):
        return
    yield finding(
        "DDP725",
        "error",
        "GPUs are here, and CUDA does not start",
        "Mend what it names: the driver, the fabric manager, /dev/nvidia-uvm, or a lost GPU.",
        notes=(f"tried; torch says: {torch.cuda_failure}", "every rank on a GPU fails so"),
        commands=("python -c 'import torch; torch.cuda.init()'", "dmesg | grep NVRM"),
    )


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
            known()["CUDA_VISIBLE_DEVICES"].reader,
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
            f"{ranks} ranks on this machine see {count(visible, 'GPU')}",
            f"Start {visible} ranks per node: torchrun --nproc-per-node={visible}",
            notes=(
                "NCCL refuses two ranks on one device",
                "ranks that train on CPUs do not mind",
            ),
        )


def old_driver(environment: Environment) -> Iterator[Finding]:
    """DDP714: a driver that does not know the CUDA that torch was built with."""
    torch, gpus = environment.torch, environment.gpus
    if not isinstance(torch, Torch) or not torch.cuda or not isinstance(gpus, tuple) or not gpus:
        return
    supported = gpus[0].cuda
    if not supported or _release(supported) >= _release(torch.cuda):
        return
    too_old = _release(supported)[0] < _release(torch.cuda)[0]
    yield finding(
        "DDP714",
        "error" if too_old else "info",
        f"driver {gpus[0].driver} is for CUDA {supported}, torch {torch.version} for {torch.cuda}",
        "Update the driver, or install a torch that was built for an older CUDA.",
        notes=(
            ("torch.cuda.is_available() is False, or the first kernel fails",)
            if too_old
            else ("harmless as a rule: within a major version CUDA is compatible",)
        ),
        certainty="proven" if too_old else "evidence",
    )


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


def without_support(environment: Environment) -> Iterator[Finding]:
    """DDP726: GPUs are here, and torch was built for CPUs."""
    torch, gpus = environment.torch, environment.gpus
    if not isinstance(torch, Torch) or not isinstance(gpus, tuple) or not gpus:
        return
    if torch.cuda or torch.hip:
        return
    yield finding(
        "DDP726",
        "warning",
        f"{count(len(gpus), 'GPU')} here, and torch {torch.version} is built for CPUs alone",
        "Install a build of torch for this driver's CUDA: pytorch.org, Get started.",
        notes=(
            "torch.cuda.is_available() is False, and init_process_group('nccl') raises",
            f"the driver is {gpus[0].driver}" + (f", for CUDA {gpus[0].cuda}" * bool(gpus[0].cuda)),
        ),
        commands=("pip install --force-reinstall torch",),
    )


def without_nccl(environment: Environment) -> Iterator[Finding]:
    """DDP726: a torch for GPUs, built without NCCL."""
    torch = environment.torch
    if not isinstance(torch, Torch) or not torch.visible_gpus or not torch.backends:
        return
    if not (torch.cuda or torch.hip) or "nccl" in torch.backends:
        return
    yield finding(
        "DDP726",
        "warning",
        f"torch {torch.version} is built without NCCL, and GPUs are here",
        "Install a build of torch with NCCL: pytorch.org, Get started.",
        notes=(
            f"backends: {', '.join(torch.backends)}",
            "init_process_group('nccl') raises; gloo moves gradients by way of main memory",
        ),
        commands=("pip install --force-reinstall torch",),
    )


def unlike(environment: Environment) -> Iterator[Finding]:
    """DDP713: GPUs of several kinds, which CUDA numbers otherwise than nvidia-smi does."""
    gpus = environment.gpus if isinstance(environment.gpus, tuple) else ()
    names = dict.fromkeys(gpu.name for gpu in gpus)
    if len(names) < 2 or environment.value("CUDA_DEVICE_ORDER") == "PCI_BUS_ID":
        return
    yield finding(
        "DDP713",
        "info",
        f"GPUs of {len(names)} kinds, and CUDA_DEVICE_ORDER is not PCI_BUS_ID",
        "Set CUDA_DEVICE_ORDER=PCI_BUS_ID, and leave the slower ones out.",
        notes=(
            *(f"{gpu.index}: {gpu.name}" for gpu in gpus[:8]),
            "CUDA numbers the fastest first, nvidia-smi by the bus: device 0 may be two GPUs",
            "harmless if all are used: but the slowest one sets the pace",
        ),
        commands=("export CUDA_DEVICE_ORDER=PCI_BUS_ID",),
    )


def unhealthy(environment: Environment) -> Iterator[Finding]:
    """DDP725: GPUs of which the driver reports faults, or that nothing has joined."""
    gpus = environment.gpus if isinstance(environment.gpus, tuple) else ()
    for gpu in gpus:
        if gpu.fabric and gpu.fabric != "Completed":
            yield finding(
                "DDP725",
                "error",
                f"GPU {gpu.index} is not joined to the others: its fabric is {gpu.fabric!r}",
                "Start the fabric manager of the driver's own version, and look at its log.",
                notes=("CUDA fails with error 802, system not yet initialized",),
                commands=("systemctl status nvidia-fabricmanager",),
                certainty="evidence",
            )
        if gpu.uncorrected:
            yield finding(
                "DDP725",
                "warning",
                f"GPU {gpu.index} has had {count(gpu.uncorrected, 'uncorrected memory error')}",
                "Reset it or reboot; leave it out if they come again.",
                notes=("a rank on it may crash, or hang the others",),
                commands=(f"nvidia-smi -i {gpu.index} -q -d ECC,PAGE_RETIREMENT",),
                certainty="evidence",
            )
    if isinstance(environment.xids, tuple) and environment.xids:
        yield finding(
            "DDP725",
            "warning",
            f"the kernel's log has {count(len(environment.xids), 'fault')} of GPUs (Xid)",
            "Look the last number up in NVIDIA's list of Xid errors.",
            notes=environment.xids,
            commands=("dmesg | grep Xid",),
            certainty="evidence",
        )


def divided(environment: Environment) -> Iterator[Finding]:
    """DDP715: a GPU in MIG mode, for several ranks."""
    gpus = environment.gpus if isinstance(environment.gpus, tuple) else ()
    numbers = [str(gpu.index) for gpu in gpus if gpu.mig == "Enabled"]
    ranks = local_ranks(environment)
    if not numbers or not ranks or ranks < 2:
        return
    yield finding(
        "DDP715",
        "warning",
        f"GPU {', '.join(numbers)}: MIG is on, and {ranks} ranks are to share this machine",
        "Switch MIG off for a job of several ranks, or train in one instance alone.",
        notes=(
            "a process sees one MIG instance at a time, and instances have no peer access",
            "NCCL may refuse two instances of one GPU as the same device",
        ),
        commands=(f"nvidia-smi -i {','.join(numbers)} -mig 0",),
        certainty="evidence",
    )


def far_from_network(environment: Environment) -> Iterator[Finding]:
    """DDP718: what makes data between GPUs and network cards, or other GPUs, take a longer way."""
    gpus, kernel = environment.gpus, environment.kernel
    if not isinstance(gpus, tuple) or not gpus:
        return
    if environment.infiniband and isinstance(kernel, Kernel) and not kernel.gpu_direct:
        yield finding(
            "DDP718",
            "info",
            "network cards cannot read GPU memory: no nvidia_peermem, no DMA-BUF",
            "Load the module, or install the open kernel modules of the driver.",
            notes=("harmless, but NCCL copies by way of main memory, which is slower",),
            commands=("modprobe nvidia_peermem",),
            certainty="evidence",
        )
    bridges = environment.redirecting
    if isinstance(bridges, tuple) and bridges and len(gpus) > 1:
        yield finding(
            "DDP718",
            "warning",
            f"{count(len(bridges), 'PCI bridge')} with ACS: GPUs meet by way of the CPU",
            "Switch ACS off in the BIOS, or for each bridge at boot.",
            notes=(
                f"bridges: {', '.join(bridges[:6])}",
                "NVIDIA: ACS redirects peer-to-peer traffic, which slows NCCL or hangs it",
            ),
            commands=(f"setpci -s {bridges[0]} ECAP_ACS+6.w=0000",),
            certainty="evidence",
        )


def in_use(environment: Environment) -> Iterator[Finding]:
    """DDP715: GPUs that take one process only, or that have some already."""
    if not isinstance(environment.gpus, tuple):
        return
    for gpu in environment.gpus:
        if gpu.compute_mode == "Prohibited" or (
            gpu.compute_mode == "Exclusive_Process" and gpu.others
        ):
            yield finding(
                "DDP715",
                "error",
                f"GPU {gpu.index} takes no other process: its compute mode is {gpu.compute_mode}",
                "Leave it out of CUDA_VISIBLE_DEVICES, or set its compute mode to default.",
                notes=(f"processes on it: {_pids(gpu.others)}",),
                commands=(f"nvidia-smi -i {gpu.index} -c DEFAULT",),
            )
        elif gpu.others:
            yield finding(
                "DDP715",
                "info",
                f"{len(gpu.others)} other processes compute on GPU {gpu.index}",
                "End those that are left over from an earlier job.",
                notes=(
                    f"processes: {_pids(gpu.others)}",
                    "harmless while memory lasts; the slowest rank sets the pace of all",
                ),
                commands=("nvidia-smi",),
            )


def _pids(pids: tuple[int, ...]) -> str:
    return ", ".join(map(str, pids[:8])) or "none"


def peers_apart(environment: Environment) -> Iterator[Finding]:
    """DDP718: GPUs that cannot read each other's memory."""
    torch = environment.torch
    if not isinstance(torch, Torch) or not torch.without_peer_access:
        return
    pairs = sorted({(min(pair), max(pair)) for pair in torch.without_peer_access})
    shown = ", ".join(f"{one}-{other}" for one, other in pairs[:6])
    yield finding(
        "DDP718",
        "info",
        f"{len(pairs)} pairs of GPUs have no direct access to each other's memory",
        "See how they are connected: nvidia-smi topo -m",
        notes=(
            f"pairs: {shown}",
            "harmless: NCCL goes by way of main memory then, which is slower",
        ),
        commands=("nvidia-smi topo -m",),
    )


def peers_claimed(environment: Environment) -> Iterator[Finding]:
    """DDP718: a driver that claims a peer access which these GPUs do not have."""
    torch, gpus = environment.torch, environment.gpus
    gpus = gpus if isinstance(gpus, tuple) else ()
    named = [gpu for gpu in gpus if _WITHOUT_PEERS in gpu.name]
    if len(gpus) < 2 or not named or _release(named[0].driver) >= _HONEST_DRIVER:
        return
    if environment.integer("NCCL_P2P_DISABLE") == 1:
        return
    if isinstance(torch, Torch) and torch.without_peer_access:
        return  # asked, it does not claim it
    kind = named[0].name[named[0].name.index(_WITHOUT_PEERS) :]
    yield finding(
        "DDP718",
        "warning",
        f"driver {named[0].driver} claims a peer access that the {kind} lacks",
        "Update the driver to 550.40.07 or newer, or set NCCL_P2P_DISABLE=1 and NCCL_IB_DISABLE=1.",
        notes=(
            "NCCL then takes a way between GPUs that is not there",
            "accelerate 1.15 raises NotImplementedError here (check_cuda_p2p_ib_support)",
        ),
        commands=("export NCCL_P2P_DISABLE=1 NCCL_IB_DISABLE=1",),
        certainty="evidence",
    )
