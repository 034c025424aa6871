"""Failures that torch, or the operating system, spells out: known by their message.

What is said here is what the message does not say: whose mistake it is, and what to do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, Raised, first_line, named


@dataclass(frozen=True, slots=True)
class Message:
    """One failure, and the words in which it shows."""

    code: str
    title: str
    pattern: re.Pattern[str]
    """Sought in "Type: message"."""
    cause: str
    """{ranks} and the named groups of the pattern may be used."""
    cure: str
    on_some: bool = False
    """Only where other ranks did not raise it."""


def _says(
    code: str, title: str, pattern: str, cause: str, cure: str, *, on_some: bool = False
) -> Message:
    return Message(code, title, re.compile(pattern), cause, cure, on_some)


MESSAGES = (
    _says(
        "DDP102",
        "double-init",
        r"trying to initialize the default process group twice",
        "init_process_group is called a second time while the first group is still there.",
        "Let one place own the process group: ask dist.is_initialized() before joining.",
    ),
    _says(
        "DDP103",
        "launched-without-launcher",
        r"environment variable (RANK|WORLD_SIZE|LOCAL_RANK|MASTER_ADDR|MASTER_PORT) expected|"
        r"KeyError: '(RANK|WORLD_SIZE|LOCAL_RANK)'",
        "the script joins a process group, but no launcher has set the ranks' variables.",
        "Start it with torchrun --standalone --nproc-per-node=N.",
    ),
    _says(
        "DDP104",
        "port-in-use",
        r"EADDRINUSE|[Aa]ddress already in use",
        "the port of the rendezvous is taken: by another job, or by another rank that also hosts.",
        "Use torchrun --standalone, which picks a free port, and let rank 0 alone host the store.",
    ),
    _says(
        "DDP105",
        "wrong-world-size",
        r"(?P<joined>\d+)/(?P<wanted>\d+) clients joined",
        "{joined} of {wanted} ranks have joined: fewer processes were started than the world size "
        "says.",
        "Take the world size from the launcher, not from a constant or an old variable.",
    ),
    _says(
        "DDP107",
        "wrong-interface",
        r"Unable to find address for: \S+|Unable to find interface|[Nn]o socket interface found",
        "the interface that GLOO_SOCKET_IFNAME or NCCL_SOCKET_IFNAME names is not on this machine.",
        "Name an interface that `ip -br addr` lists, or unset the variable.",
    ),
    _says(
        "DDP113",
        "unguarded-spawn",
        r"before the\s+current process has finished its bootstrapping phase",
        "the children import the script and start children themselves: mp.spawn is not guarded.",
        'Put what starts processes under `if __name__ == "__main__":`.',
    ),
    _says(
        "DDP116",
        "backend-device-mismatch",
        r"No backend type associated with device type (?P<device>\w+)",
        "a {device} tensor is given to a group whose backend has no {device} collectives.",
        'Join with a backend for each device: init_process_group("cpu:gloo,cuda:nccl").',
    ),
    _says(
        "DDP117",
        "unpicklable-spawn-arguments",
        r"[Cc]an'?(t|not) pickle|Can't get local object",
        "an argument of the spawned function cannot be pickled for the child.",
        "Hand over module-level functions and plain data; open files and build lambdas in the "
        "child.",
    ),
    _says(
        "DDP308",
        "no-loss-on-one-rank",
        r"element 0 of tensors does not require grad and does not have a grad_fn",
        "{ranks} had no loss that depends on the model, and so no gradients to reduce.",
        "Return out.sum() * 0 where there is nothing to learn from, and normalise over all ranks.",
        on_some=True,
    ),
    _says(
        "DDP310",
        "different-models",
        r"DDP expects same model across all ranks|"
        r"appears not to match (sizes|strides) of the same param in process",
        "the ranks built different models: their parameters differ in number or size.",
        "Build the model from the same configuration on every rank.",
    ),
    _says(
        "DDP311",
        "marked-ready-twice",
        r"mark a variable ready only once|marked as ready twice",
        "a parameter got its gradient twice in one backward: reentrant checkpointing, or a "
        "parameter shared between wrapped parts.",
        "Pass use_reentrant=False to checkpoint, or static_graph=True to DDP.",
    ),
    _says(
        "DDP317",
        "static-graph-changed",
        r"training graph has changed in this iteration",
        "static_graph=True promises a graph that never changes, and it changed.",
        "Use find_unused_parameters=True instead, or keep the graph the same at every step.",
    ),
    _says(
        "DDP318",
        "wrapper-attribute",
        r"'DistributedDataParallel' object has no attribute '(?P<name>\w+)'",
        "`{name}` belongs to the model inside, and DistributedDataParallel does not hand it on.",
        "Ask model.module.{name}; call forward through the wrapper.",
    ),
)


def detect(case: Case) -> Iterator[Finding]:
    """One finding for each kind of message."""
    for message in MESSAGES:
        hit = [each for each in case.raised if _search(message, each)]
        if hit and not (message.on_some and len(hit) == len(case.evidence.ranks)):
            yield _finding(case, message, hit)


def _search(message: Message, raised: Raised) -> re.Match[str] | None:
    return message.pattern.search(f"{raised.exception.type}: {raised.exception.message}")


def _finding(case: Case, message: Message, hit: list[Raised]) -> Finding:
    case.explain(*hit)
    match = _search(message, hit[0])
    ranks = tuple(each.rank.rank for each in hit)
    facts = {name: value or "" for name, value in (match.groupdict() if match else {}).items()}
    places = dict.fromkeys(each.exception.place for each in hit)
    return Finding(
        code=message.code,
        title=message.title,
        severity="error",
        certainty="proven",
        ranks=ranks,
        places=tuple(
            RankPlace(
                ranks=tuple(e.rank.rank for e in hit if e.exception.place == place),
                place=place,
                doing=f"raised {hit[0].exception.type}",
            )
            for place in places
        ),
        cause=message.cause.format(ranks=named(ranks), **facts),
        cure=Cure(text=message.cure.format(**facts)),
        evidence=(first_line(hit[0].exception.message),),
        consequences=case.consequences(),
    )
