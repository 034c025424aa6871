"""Dumps of PyTorch's flight recorder: what each rank had issued, and what had not completed.

A dump is a pickle or a JSON document, a file for each rank. Of its fields, two must not be trusted
(measured on torch 2.13): on gloo, `state` stays "scheduled" for ever, and `retired` becomes true
also of what timed out. Blame does not depend on the order of files: ranks are compared by number.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ddpdoctor.evidence import (
    DAMAGED,
    MOST_RANKS,
    Collective,
    Evidence,
    Group,
    Place,
    RankEvidence,
    Stuck,
    named,
    open_file,
    pair_key,
)
from ddpdoctor.postmortem import unpickling
from ddpdoctor.postmortem.frames import is_users
from ddpdoctor.postmortem.material import Material, NothingToRead

_LARGEST = 1 << 30
_MOST_ENTRIES = 200_000
_RANK = re.compile(r"(\d+)(?:\.(?:json|pkl|pickle))?$")
_PEER = re.compile(r"^(send|recv)\s+(\d+)\s*(?:->|<-)\s*(\d+)")
_IN_TORCH = "/torch/distributed/distributed_c10d.py"

Entry = dict[str, Any]
Dump = dict[str, Any]


def dumps_in(folder: Path) -> list[Path]:
    """The files of a folder that look like dumps, by their first bytes and the number in a name."""
    found = []
    for path in sorted(folder.iterdir()):
        if path.is_file() and _RANK.search(path.name):
            with open_file(path) as file:
                if looks_like_dump(file.read(4096), path.name):
                    found.append(path)
    return found


def looks_like_dump(head: bytes, name: str) -> bool:
    """Whether a file that begins so may be a dump: a pickle, or JSON with the recorder's keys."""
    if re.match(rb"\x80[\x02-\x05][}(]?", head):
        return True
    start = head.lstrip()
    keys = (b'"entries"', b'"pg_config"', b'"pg_status"', b'"version"')
    return start.startswith(b"{") and any(key in head for key in keys)


def read(paths: Iterable[Path]) -> Material:
    """All ranks' dumps as one body of evidence. Raises NothingToRead."""
    from ddpdoctor.diagnose.aftermath import judge_record

    found: dict[int, RankEvidence] = {}
    suspects: dict[int, Stuck | None] = {}
    troubles = []
    for path in sorted(paths):
        try:
            dump = _load(path)
            rank = RankEvidence(_rank(path, dump), 0)
            suspect = _fill(rank, dump)
        except (unpickling.Refused, *DAMAGED) as error:
            troubles.append(f"{path.name} is no dump that can be read: {error}")
            continue
        if rank.rank not in found or rank.last_event > found[rank.rank].last_event:
            found[rank.rank], suspects[rank.rank] = rank, suspect
    if not found:
        raise NothingToRead("; ".join(troubles[:3]) or "there is no flight-recorder dump")
    for number, suspect in suspects.items():
        if suspect is not None and _had_timed_out(suspect, found[number], found):
            found[number].stuck = suspect
    evidence = _together(found)
    absent = [rank.rank for rank in evidence.ranks if rank.rank not in found]
    if absent:
        troubles.append(f"there is no dump of {named(absent)}")
    return Material(
        (("flight recorder", evidence),), lambda: judge_record(evidence), tuple(troubles)
    )


def _together(found: dict[int, RankEvidence]) -> Evidence:
    """One world of all ranks that the dumps speak of, seen at one time: waiting is stable."""
    members = {m for rank in found.values() for group in rank.groups.values() for m in group.ranks}
    size = 1 + max([*found, *(member for member in members if member < MOST_RANKS)])
    ranks = [found.get(number) or RankEvidence(number, size) for number in range(size)]
    now = max(rank.last_event for rank in found.values())
    for rank in found.values():
        rank.world_size, rank.last_event = size, now
        if rank.stuck is not None:
            rank.stuck = replace(rank.stuck, seen=now)
    return Evidence(size, ranks)


def _load(path: Path) -> Dump:
    if path.stat().st_size > _LARGEST:
        raise ValueError("it is larger than 1 GiB")
    with open_file(path) as file:
        pickled = file.read(1) == b"\x80"
        file.seek(0)
        dump = unpickling.load(file) if pickled else json.load(file)
    if not isinstance(dump, dict) or not isinstance(dump.get("entries", []), list):
        raise ValueError("it holds no entries")
    if "entries" not in dump and "pg_config" not in dump:
        raise ValueError("it holds no entries")
    return dump


def _rank(path: Path, dump: Dump) -> int:
    """What the dump says; else the number at the end of its name, as torch writes it."""
    said = dump.get("rank")
    if isinstance(said, int):
        number = said
    elif match := _RANK.search(path.name):
        number = int(match[1])
    else:
        raise ValueError("neither its name nor its content tells the rank")
    if not 0 <= number < MOST_RANKS:
        raise ValueError(f"{number} is no rank")
    return number


def _entries(dump: Dump) -> list[Entry]:
    entries = dump.get("entries", [])[-_MOST_ENTRIES:]
    return [entry for entry in entries if isinstance(entry, dict)]


def _groups(dump: Dump) -> Iterator[Group]:
    """The groups of a dump; on gloo their names are missing, and the default one is meant."""
    config = dump.get("pg_config")
    for name, about in (config if isinstance(config, dict) else {}).items():
        if isinstance(about, dict):
            numbers = re.findall(r"\d+", str(about.get("ranks", "")))
            ranks = tuple(int(number) for number in numbers)
            yield Group(str(name) or "0", ranks, "", 0.0, None)


def _fill(rank: RankEvidence, dump: Dump) -> Stuck | None:
    """Take in a dump. Also its last call, if it may have timed out: gloo's dumps do not tell."""
    rank.pid = -1  # not known, but there was one
    rank.groups = {group.name: group for group in _groups(dump) if group.ranks}
    entries = sorted(_entries(dump), key=lambda entry: _number(entry, "record_id"))
    is_whole = not entries or _number(entries[0], "record_id") == 0
    pairs: Counter[str] = Counter()
    waiting: dict[str, tuple[Collective, Entry]] = {}
    issued: dict[str, int] = {}
    for entry in entries:
        collective = _collective(entry, rank, pairs)
        if collective.peer is not None and not is_whole:
            continue  # those that fell out of the buffer were not counted
        rank.collectives.append(collective)
        key = collective.group
        if collective.peer is not None:
            key = pair_key(key, collective.op, collective.peer, 0)
        issued[key] = collective.seq
        if not entry.get("retired") and entry.get("state") != "completed":
            waiting.setdefault(collective.group, (collective, entry))  # a group works in order
    for name, status in _dict(dump.get("pg_status")).items():
        last = _number(_dict(status), "last_enqueued_collective")
        issued[str(name)] = max(issued.get(str(name), 0), last)
    rank.last_event = max((collective.begun for collective in rank.collectives), default=0.0)
    if waiting:
        rank.stuck = _stuck(list(waiting.values()), issued)
    elif rank.collectives and _profiling_name(entries[-1]).startswith("gloo"):
        return _stuck([(rank.collectives[-1], entries[-1])], issued)
    return None


def _had_timed_out(suspect: Stuck, rank: RankEvidence, found: dict[int, RankEvidence]) -> bool:
    """Gloo retires what timed out: a call that some other member never made never completed."""
    call = suspect.waiting[0]
    group = rank.groups.get(call.group)
    members = group.ranks if group is not None else tuple(found)
    return call.peer is None and any(_never_made(call, found[m]) for m in members if m in found)


def _never_made(collective: Collective, member: RankEvidence) -> bool:
    group, seq = collective.group, collective.seq
    theirs = [c for c in member.collectives if c.group == group and c.peer is None]
    ops = [c.op for c in theirs if c.seq == seq]
    never = max((c.seq for c in theirs), default=0) < seq
    return never or (ops != [] and collective.op not in ops)


def _collective(entry: Entry, rank: RankEvidence, pairs: Counter[str]) -> Collective:
    group, op = _group_and_op(entry, rank)
    peer = None
    seq = _number(entry, "collective_seq_id")
    if match := _PEER.match(op):
        op, ends = match[1], (int(match[2]), int(match[3]))
        members = rank.groups[group].ranks if group in rank.groups else ()
        within = ends[1] if op == "send" or ends[0] == rank.rank else ends[0]
        peer = members[within] if within < len(members) else within
        key = pair_key(group, op, peer, 0)
        pairs[key] += 1
        seq = pairs[key]
    frames = _frames(entry)
    users = [frame for frame in frames if is_users(frame.file)]
    dtypes = _list(entry.get("input_dtypes")) or [""]
    return Collective(
        group=group,
        seq=seq,
        op=op,
        begun=_number(entry, "time_created_ns") / 1e9,
        place=users[-1] if users else None,
        shapes=_shapes(entry.get("input_sizes")),
        dtype=str(dtypes[0]).lower(),
        peer=peer,
    )


def _group_and_op(entry: Entry, rank: RankEvidence) -> tuple[str, str]:
    name, about = (str(part) for part in (*_list(entry.get("process_group")), "", "")[:2])
    if about == "default_pg" or not name:
        name = name or "0"
        if name not in rank.groups and len(rank.groups) == 1:
            rank.groups[name] = next(iter(rank.groups.values()))
    return name, _profiling_name(entry).rpartition(":")[2]


def _stuck(waiting: list[tuple[Collective, Entry]], issued: dict[str, int]) -> Stuck:
    first, entry = waiting[0]
    frames = _frames(entry)
    if not frames or is_users(frames[-1].file):
        frames = (*frames, Place(_IN_TORCH, 0, first.op))
    return Stuck(
        since=first.begun,
        seen=first.begun,
        stack=frames,
        place=first.place,
        waiting=tuple(collective for collective, _ in waiting),
        issued=issued,
        awaited=first if len(waiting) == 1 else None,
    )


def _frames(entry: Entry) -> tuple[Place, ...]:
    """Outermost first, as everywhere else here; the recorder has the innermost first."""
    frames = _list(entry.get("frames"))
    return tuple(
        Place(str(f.get("filename", "")), _number(f, "line"), str(f.get("name", "")))
        for f in reversed(frames[:200])
        if isinstance(f, dict)
    )


def _shapes(sizes: Any) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(n for n in _list(size) if isinstance(n, int)) for size in _list(sizes))


def _profiling_name(entry: Entry) -> str:
    return str(entry.get("profiling_name", ""))


def _number(about: Entry, key: str) -> int:
    value = about.get(key)
    return value if isinstance(value, int) else 0


def _dict(value: Any) -> Entry:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else ()
