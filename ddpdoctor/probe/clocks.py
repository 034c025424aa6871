"""How far the hosts' clocks are apart, by the exchange that NTP makes (RFC 5905, section 8)."""

from __future__ import annotations

import time

import torch
import torch.distributed as dist

from ddpdoctor.probe.model import HostClock
from ddpdoctor.probe.talk import Talk

_EXCHANGES = 10


def clocks(talk: Talk, hosts: list[str]) -> list[HostClock]:
    """The clock of each other host against rank 0's; `hosts` has the host of each rank."""
    found = []
    for rank in (hosts.index(name) for name in dict.fromkeys(hosts) if name != hosts[0]):
        talk.together()
        if talk.rank in (0, rank):
            found.append(_compare(talk, rank, hosts[rank]))
    told = talk.gathered([one.model_dump() for one in found if one])
    return [HostClock.model_validate(one) for one in told[0]]


def _compare(talk: Talk, other: int, host: str) -> HostClock | None:
    best: tuple[float, float] | None = None
    for _ in range(_EXCHANGES):
        if talk.rank == 0:
            times = torch.zeros(2, dtype=torch.float64, device=talk.device)
            sent = time.time()
            dist.send(times, other)
            dist.recv(times, other)
            back = time.time()
            received, answered = (float(one) for one in times.tolist())
            way = (back - sent) - (answered - received)
            offset = ((received - sent) + (answered - back)) / 2
            if best is None or way < best[0]:
                best = way, offset
        else:
            times = torch.zeros(2, dtype=torch.float64, device=talk.device)
            dist.recv(times, 0)
            received = time.time()
            answer = torch.tensor([received, time.time()], dtype=torch.float64)
            dist.send(answer.to(talk.device), 0)
    return HostClock(host=host, offset=best[1], uncertainty=best[0] / 2) if best else None
