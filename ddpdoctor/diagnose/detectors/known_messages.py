"""Failures that are known by their message, beside those of `messages`: of machines and of logs.

What only a log has (lines without a traceback, ranks of which nothing else is known) is here too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, Raised, first_line
from ddpdoctor.diagnose.detectors import messages
from ddpdoctor.evidence import ExceptionRecord, Place


@dataclass(frozen=True)
class Message:
    """A message, and what it means."""

    pattern: str
    """Searched in "Type: message"."""
    code: str
    title: str
    cause: str
    """May quote what the pattern captured: {0}, {1}."""
    cure: str
    frames: str = ""
    """A path or function that must be among the frames."""
    in_causes: bool = False
    """Also where the exception that ended the rank was only raised from such a one."""
    of_victims: bool = False
    """Those who raise it suffer from what another rank did."""
    names_culprits: bool = False
    """What the pattern captures are the numbers of the ranks to blame."""


MESSAGES = (
    Message(
        r"invalid device ordinal",
        "DDP106",
        "devices-not-bound",
        "a rank chose a GPU that this machine does not have, often by its global rank.",
        "Call torch.cuda.set_device(int(os.environ['LOCAL_RANK'])) before init_process_group.",
    ),
    Message(
        r"Duplicate GPU detected",
        "DDP106",
        "devices-not-bound",
        "two ranks use the same GPU.",
        "Call torch.cuda.set_device(int(os.environ['LOCAL_RANK'])) before init_process_group.",
    ),
    Message(
        r"client socket has (?:timed out|failed to connect)|No route to host|"
        r"failed to connect to [\w.:\[\]-]+ .*after|TCPStore.* timed out",
        "DDP108",
        "unreachable-peer",
        "the rendezvous on the master node could not be reached.",
        "Check MASTER_ADDR, and that no firewall stands between the nodes.",
    ),
    Message(
        r"unrecognized arguments:.*--local[-_]rank",
        "DDP112",
        "local-rank-argument",
        "a launcher passed --local-rank, which the script does not take.",
        "Start it with torchrun, and read LOCAL_RANK from the environment.",
    ),
    Message(
        r"required: .*--local[-_]rank",
        "DDP112",
        "local-rank-argument",
        "the script demands --local-rank, which torchrun does not pass.",
        "Read LOCAL_RANK from the environment.",
    ),
    Message(
        r"No backend type associated with device type (\w+)|Tensors must be CUDA and dense",
        "DDP116",
        "backend-device-mismatch",
        "a collective was given tensors on a device that the group's backend does not serve.",
        "Choose the backend by device: init_process_group('cpu:gloo,cuda:nccl').",
    ),
    Message(
        r"Cannot re-initialize CUDA in forked subprocess",
        "DDP100",
        "cuda-in-forked-process",
        "a process that had used CUDA was forked, and its child uses CUDA too.",
        "Touch no GPU before the ranks are started, or start them by spawn.",
    ),
    Message(
        r"Default process group has not been initialized|"
        r"torch\.distributed is not yet initialized",
        "DDP100",
        "group-not-initialised",
        "torch.distributed is used before init_process_group, or after destroy_process_group.",
        "Initialise the process group first.",
    ),
    Message(
        r"Detected mismatch between collectives on ranks[\s\S]*\bOp type: ",
        "DDP402",
        "collective-order-mismatch",
        "the ranks called different collectives, as TORCH_DISTRIBUTED_DEBUG=DETAIL has found.",
        "Call the same collectives in the same order on every rank.",
    ),
    Message(
        r"Detected mismatch between collectives on ranks|op\.preamble\.length <= op\.nbytes",
        "DDP403",
        "collective-shape-mismatch",
        "the ranks called a collective with different sizes, or different collectives.",
        "Agree on the sizes first, or pad.",
    ),
    Message(
        r"failed finding central directory|PytorchStreamReader failed|unexpected EOF, expected "
        r"\d+ more bytes",
        "DDP500",
        "unreadable-checkpoint",
        "the checkpoint is not whole: it was read while it was written, or its writer was killed.",
        "Write to a temporary file, os.replace it, and let the other ranks wait for the outcome.",
    ),
    Message(
        r"No space left on device",
        "DDP511",
        "failed-save-unshared",
        "the disk was full while a file was written.",
        "Free space, keep the last k checkpoints only, and share the outcome with all ranks.",
        frames=r"torch/serialization\.py|save",
    ),
    Message(
        r"killed by signal: Bus error|insufficient shared memory|out of shared memory|"
        r"unable to (?:mmap|write to file|allocate shared memory).*torch_",
        "DDP604",
        "shared-memory-exhausted",
        "the data loaders' workers have filled /dev/shm.",
        "Give the container more of it (docker run --shm-size=8g), or use fewer workers.",
        in_causes=True,
    ),
    Message(
        r"received 0 items of ancdata|Too many open files",
        "DDP600",
        "too-many-open-files",
        "the process ran out of file descriptors.",
        "Raise ulimit -n, or torch.multiprocessing.set_sharing_strategy('file_system').",
    ),
    Message(
        r"CUDA out of memory|CUDA error: out of memory|Cuda failure 'out of memory'|"
        r"not enough memory: you tried to allocate",
        "DDP600",
        "out-of-memory",
        "a rank ran out of memory.",
        "Use a smaller batch per rank; if only one rank fails, look at what it alone holds.",
    ),
    Message(
        r"DataLoader worker \(pid\(?s?\)? [\d, ]+\) (?:is killed by signal: (\w+)|exited)",
        "DDP600",
        "worker-died",
        "a data-loader worker died; SIGKILL that nobody sent is the kernel out of memory.",
        "Look at dmesg, use fewer workers, and num_workers=0 to see the worker's own exception.",
    ),
    Message(
        r"ncclSystemError|ncclInternalError|ncclUnhandledCudaError|NCCL error in:",
        "DDP100",
        "nccl-failed",
        "NCCL failed below PyTorch: the network, the driver or a device.",
        "Run again with NCCL_DEBUG=WARN, which names what failed; see ddpdoctor env.",
    ),
    Message(
        r"Ranks? ([\d, ]+) failed to pass monitoredBarrier",
        "DDP400",
        "missing-call",
        "rank {0} did not come to the monitored barrier of the others in time.",
        "Look at what it did instead: an exception, a loop that ended early, or a call under a "
        "condition.",
        of_victims=True,
        names_culprits=True,
    ),
    Message(
        r"Connection (?:closed|reset) by peer|Broken pipe|Socket closed|remote process exited|"
        r"NCCL communicator was aborted",
        "DDP400",
        "peer-left",
        "these ranks lost the connection to a rank that had left, and nothing tells why it did.",
        "Look at the rank that does not say this: it exited, was killed, or its words are lost.",
        of_victims=True,
    ),
)

_NAMED = re.compile(r"[?]P<\w+>|[(][?]s[)]")
_ANY = re.compile(
    "|".join(
        f"(?:{_NAMED.sub('', pattern)})"
        for pattern in (
            *(message.pattern for message in MESSAGES),
            *(message.pattern.pattern for message in messages.MESSAGES),
        )
    )
)


def is_known(line: str) -> bool:
    """Whether a line of text holds one of the messages."""
    return _ANY.search(line) is not None


def detect(case: Case) -> Iterator[Finding]:
    """One finding for each message that is known, on all the ranks that raised it."""
    for message in MESSAGES:
        hit = [each for each in case.raised if _says(message, each)]
        if hit:
            case.explain(*hit)
            yield _finding(case, message, hit)


def _says(message: Message, raised: Raised) -> bool:
    exception = raised.exception
    if _match(message, exception) is None:
        return False
    frames = (f"{frame.file} {frame.function}" for frame in exception.frames)
    return not message.frames or any(re.search(message.frames, frame) for frame in frames)


def _match(message: Message, exception: ExceptionRecord) -> re.Match[str] | None:
    found = re.search(message.pattern, f"{exception.type}: {exception.message}")
    if found is None and message.in_causes and exception.cause is not None:
        return _match(message, exception.cause)
    return found


def _finding(case: Case, message: Message, hit: list[Raised]) -> Finding:
    ranks = tuple(each.rank.rank for each in hit)
    first = min(hit, key=lambda each: (each.exception.time, each.rank.rank)).exception
    match = _match(message, first)
    quoted = [group or "" for group in match.groups()] if match else []
    culprits = tuple(map(int, re.findall(r"\d+", quoted[0]))) if message.names_culprits else ()
    places: dict[tuple[Place | None, str], list[int]] = {}
    for each in hit:
        key = (each.exception.place, f"raised {each.exception.type}")
        places.setdefault(key, []).append(each.rank.rank)
    return Finding(
        code=message.code,
        title=message.title,
        severity="error",
        certainty="proven",
        ranks=culprits if message.of_victims else ranks,
        places=tuple(
            RankPlace(ranks=tuple(who), place=place, doing=doing)
            for (place, doing), who in places.items()
        ),
        cause=message.cause.format(*quoted) if quoted else message.cause,
        cure=Cure(text=message.cure.format(*quoted) if quoted else message.cure),
        evidence=(first_line(f"{first.type}: {first.message}", 200),),
        consequences=case.consequences(),
    )
