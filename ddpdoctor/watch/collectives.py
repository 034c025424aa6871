"""Records every collective that Python code issues, and which of them are still outstanding.

The methods of `ProcessGroup` are wrapped, not the functions of `torch.distributed`: all of those
end in these, they carry root and reduce op, and torch.compile recognises the functions by identity.
What DDP issues from C++ (buckets, buffers) does not pass here; the C++ flight recorder knows it.

A loop that communicates at every step must not pay for a line in the log at every step: after the
first few, what comes soon after a line waits in memory for the next beat of the heart, which writes
all of it at once.
"""

from __future__ import annotations

import functools
import inspect
import json
import sys
import threading
import time
from collections import Counter, deque
from functools import lru_cache
from typing import Any

from ddpdoctor.evidence import EXCHANGES, MAKING_GROUPS, pair_key
from ddpdoctor.watch import given, labels, lost
from ddpdoctor.watch.exceptions import passing
from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.log import Log
from ddpdoctor.watch.places import Frame, users_frame

_OPS = {
    "allreduce": "all_reduce",
    "allreduce_coalesced": "all_reduce",
    "broadcast": "broadcast",
    "barrier": "barrier",
    "monitored_barrier": "monitored_barrier",
    "reduce": "reduce",
    "allgather": "all_gather",
    "allgather_coalesced": "all_gather",
    "_allgather_base": "all_gather",
    "allgather_into_tensor_coalesced": "all_gather",
    "gather": "gather",
    "scatter": "scatter",
    "reduce_scatter": "reduce_scatter",
    "_reduce_scatter_base": "reduce_scatter",
    "reduce_scatter_tensor_coalesced": "reduce_scatter",
    "alltoall": "all_to_all",
    "alltoall_base": "all_to_all",
    # The names that torch 2.13 has given to those of single tensors.
    "all_gather_single": "all_gather",
    "all_gather_single_coalesced": "all_gather",
    "reduce_scatter_single": "reduce_scatter",
    "reduce_scatter_single_coalesced": "reduce_scatter",
    "all_to_all_single": "all_to_all",
}
_BETWEEN_TWO = {"send": "send", "recv": "recv", "recv_anysource": "recv"}

_FIRST = 32
"""So many calls from one line are written at once each: a wrong one may end the process."""
_CLOSELY = 4
"""So many calls from one line are looked at closely, and then the 11th, the 20th, the 37th, ..."""
_OF_WAY, _OF_WAYS = 6, 256
"""And so many of each way to a line, until so many calls from it: three each of two in turn."""
_READ = 4
"""After a sum of losses, so many numbers are looked at as they are read, be it with a graph."""
_AT_ONCE = 0.05
"""Seconds since the last line after which a collective is written at once."""
_KEPT = 1024
"""So many collectives are kept in memory: what has not been waited for, what was not written."""

Fields = dict[str, Any]
"""One collective, with the fields of `evidence.Collective`."""


class Pending:
    """The collectives of this rank that have been issued and have not completed.

    `kept` knows place, root and reduce op of those that Python issued; the flight recorder, where
    this torch has it, knows all of them and whether they completed, but nothing of send and recv.
    """

    def __init__(self, log: Log) -> None:
        self.threads: set[int] = set()
        self.turns: dict[int, int] = {}
        """By thread: how often it has begun a collective, or begun or ended to wait for one."""
        self.log = log
        self.followed: Fields | None = None
        """The latest call of the user's own whose handle is to be followed."""
        self.settles: bool | None = False
        """Whether it is to be seen who reads the result that is about to be waited for."""
        self._kept: dict[int, Fields] = {}
        self._awaited: int | None = None
        self._meeting: Fields | None = None
        self._meetings = 0
        self._counts: dict[str, int] = {}
        self._pairs: Counter[str] = Counter()
        self._uncounted: Counter[int] = Counter()
        """By group: how far its sequence number counts what was between two ranks only."""
        self._calls: Counter[Frame | None] = Counter()
        self._ways: Counter[int] = Counter()
        self._unwritten: deque[Fields] = deque(maxlen=_KEPT)
        self._written = 0.0

    def turn(self) -> None:
        """What this thread waits in is another thing than before."""
        thread = threading.get_ident()
        self.turns[thread] = self.turns.get(thread, 0) + 1

    def outstanding(self) -> list[Fields]:
        """Oldest first."""
        kept = [*self._kept.values(), *([self._meeting] if self._meeting else [])]
        recorded = _flight_record()
        if recorded is None:
            return kept
        by_number = {(c["group"], c["seq"]): c for c in kept if "peer" not in c}
        found = [by_number.get((c["group"], c["seq"]), c) for c in recorded]
        return found + [c for c in kept if "peer" in c or c is self._meeting]

    def awaited(self) -> Fields | None:
        """The one that the main thread waits in; None if it is none that Python issued."""
        if self._meeting is not None:
            return self._meeting
        return self._kept.get(self._awaited) if self._awaited is not None else None

    def issued(self) -> dict[str, int]:
        """How many collectives this rank has issued, by name of the group; and pairs of ranks."""
        from torch.distributed import distributed_c10d

        with self.log.looking_at_groups:
            if not self.log.destroys_groups:
                groups: Any = distributed_c10d._world.pg_map
                self._counts = {group.group_name: self.count(group) for group in groups}
        return {**self._counts, **self._pairs, MAKING_GROUPS: self._meetings}

    def count(self, group: Any) -> int:
        """How many collectives of all its members a group has seen on this rank."""
        number: int = group._get_sequence_number_for_group()
        return number - self._uncounted[id(group)]

    def begin(self, fields: Fields) -> None:
        """A collective is about to be issued."""
        self.log.issued += 1
        fields["begun"] = now = time.monotonic()
        self._unwritten.append(fields)
        line = fields["place"]
        self._calls[line] += 1
        if (way := fields.get("way")) is not None:
            self._ways[way] += 1
        if self._calls[line] <= _FIRST or now - self._written > _AT_ONCE:
            self.write()

    def is_sampled(self, line: Frame | None, way: int | None) -> bool:
        """Whether the call that is about to be issued from there is looked at closely.

        The first ones, and ever rarer ones after them. A loop over parameters calls as often in
        every step: of powers of two all might be of one and the same parameter. What one function
        does for several lines is another thing for each of them.
        """
        number = self._calls[line] + 1
        if number <= _OF_WAYS and way is not None and self._ways[way] < _OF_WAY:
            return True
        power = number.bit_length() - 1
        return number <= _CLOSELY or number == (1 << power) + power

    def is_one_of_the_first(self, line: Frame | None, many: int) -> bool:
        """Whether the call that is about to be issued from there is among its first ones."""
        return self._calls[line] < many

    def write(self) -> None:
        """Write down what has not been written."""
        if not self._unwritten:
            return
        self._written = time.monotonic()
        rows = list(self._unwritten)
        self._unwritten.clear()
        self.log.write("collective", rows=rows)

    def keep(self, work: Any, fields: Fields) -> None:
        """It was issued; `work` is what one waits for."""
        self._kept.pop(id(work), None)
        self._kept[id(work)] = fields
        if fields is self.followed:
            given.follow(self.log, work, fields)
        if len(self._kept) > _KEPT:
            del self._kept[next(iter(self._kept))]

    def leave_out(self, group: Any, before: int) -> None:
        """Do not count what was just issued: a send or recv is no collective of the group."""
        grown = group._get_sequence_number_for_group() - before
        self._uncounted[id(group)] += grown

    def number(self, key: str) -> int:
        """The number of the next send or recv of this kind."""
        self._pairs[key] += 1
        return self._pairs[key]

    def wait_in(self, work: Any) -> int | None:
        """The main thread begins to wait for `work`; returns what it waited for before."""
        self.turn()
        before, self._awaited = self._awaited, id(work)
        return before

    def waited(self, work: Any, before: int | None) -> None:
        """It waits no more."""
        self.turn()
        given.awaited(work)
        if self.settles:
            self.settles = False
            time.sleep(lost.LET_GO)
        self._awaited = before
        self._kept.pop(id(work), None)

    def forget(self, work: Any) -> None:
        """Somebody else than the main thread has waited for it."""
        given.awaited(work)
        self._kept.pop(id(work), None)

    def meet(self, members: list[int]) -> None:
        """All ranks are to come to the store, to make a group of these members."""
        self.turn()
        self._meetings += 1
        self._meeting = {
            "group": MAKING_GROUPS,
            "seq": self._meetings,
            "op": "new_group",
            "place": users_frame(),
            "shapes": [members],
        }
        self.begin(self._meeting)

    def met(self) -> None:
        """All have come."""
        self.turn()
        self._meeting = None


def _flight_record() -> list[Fields] | None:
    """What the C++ flight recorder holds as not yet completed; None where there is no recorder."""
    from torch._C import _distributed_c10d

    dump = getattr(_distributed_c10d, "_dump_fr_trace_json", None)
    if dump is None:
        return None
    trace = json.loads(dump(includeCollectives=True, onlyActive=False))
    entries = trace.get("entries", [])
    if not entries:
        return None
    age = time.time_ns() - time.monotonic_ns()
    return [
        {
            "group": entry["process_group"][0],
            "seq": entry["collective_seq_id"],
            "op": entry["profiling_name"].split(":")[-1],
            "begun": (entry["time_created_ns"] - age) / 1e9,
            "shapes": entry["input_sizes"],
            "dtype": entry["input_dtypes"][0] if entry["input_dtypes"] else "",
        }
        for entry in entries
        if not entry["retired"] and not entry["is_p2p"]
    ]


def install(log: Log) -> Pending:
    """Wrap `ProcessGroup`, `Work.wait` and the meeting at the store of this process."""
    from torch._C import _distributed_c10d
    from torch.distributed import distributed_c10d

    pending = Pending(log)
    group_type = _distributed_c10d.ProcessGroup
    for method, op in _OPS.items():
        if hasattr(group_type, method):
            _wrap_collective(group_type, method, op, pending)
    for method, op in _BETWEEN_TWO.items():
        if hasattr(group_type, method):
            _wrap_pair(group_type, method, op, pending)
    _wrap_wait(_distributed_c10d.Work, pending)
    given.listen(_distributed_c10d.Work)
    _wrap_meeting(distributed_c10d, pending)
    _before_exit(pending)
    return pending


@harmless
def _before_exit(pending: Pending) -> None:
    threading._register_atexit(pending.write)  # type: ignore[attr-defined]


def _wrap_collective(group_type: Any, method: str, op: str, pending: Pending) -> None:
    original = getattr(group_type, method)
    note, keep = harmless(_note), harmless(pending.keep)

    def issue(group: Any, *args: Any, **kwargs: Any) -> Any:
        fields = note(pending, group, op, args, kwargs)
        try:
            work = original(group, *args, **kwargs)
        except Exception as error:
            passing(pending.log, error, "collective")
            raise
        if work is not None and fields is not None:
            keep(work, fields)
        return work

    setattr(group_type, method, issue)


def _wrap_pair(group_type: Any, method: str, op: str, pending: Pending) -> None:
    original = getattr(group_type, method)
    number = harmless(lambda group: group._get_sequence_number_for_group())
    note, keep = harmless(_note_pair), harmless(pending.keep)
    leave_out = harmless(pending.leave_out)

    def issue(group: Any, *args: Any, **kwargs: Any) -> Any:
        before = number(group)
        fields = note(pending, group, op, args)
        work = original(group, *args, **kwargs)
        if before is not None:
            leave_out(group, before)
        if work is not None and fields is not None:
            keep(work, fields)
        return work

    setattr(group_type, method, issue)


def _wrap_wait(work_type: Any, pending: Pending) -> None:
    original = work_type.wait
    main = threading.main_thread()

    def wait(work: Any, *args: Any, **kwargs: Any) -> Any:
        if threading.current_thread() is not main:
            try:
                return original(work, *args, **kwargs)
            finally:
                pending.forget(work)
        before = pending.wait_in(work)
        try:
            return original(work, *args, **kwargs)
        except Exception as error:
            passing(pending.log, error, "collective")
            raise
        finally:
            pending.waited(work, before)

    work_type.wait = wait


def _wrap_meeting(module: Any, pending: Pending) -> None:
    original = getattr(module, "_new_group_with_tag", None)
    if original is None:
        return

    @harmless
    def meet(args: Any, kwargs: Any) -> None:
        asked = inspect.signature(original).bind_partial(*args, **kwargs).arguments
        if not asked.get("use_local_synchronization"):
            ranks = asked.get("ranks")
            pending.meet(list(range(module.get_world_size())) if ranks is None else sorted(ranks))

    @functools.wraps(original)
    def new_group(*args: Any, **kwargs: Any) -> Any:
        meet(args, kwargs)
        try:
            return original(*args, **kwargs)
        finally:
            pending.met()

    module._new_group_with_tag = new_group


def _note(
    pending: Pending, group: Any, op: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Fields:
    """Write down a collective that is about to be issued; returns what was written."""
    options = kwargs.get("opts", args[-1] if args else None)
    fields = _common(pending, group, op, args)
    fields["seq"] = pending.count(group) + 1
    if pending.log.gradients and op == "all_reduce":
        fields["gradient"] = given.gradient(pending.log.gradients, args) or ""
    if pending.is_sampled(fields["place"], fields["way"]):
        fields.update(given.facts(op, args, pending.log.averages) or {})
        if "losses" in fields:
            pending.log.summed = _READ
        if given.is_direct():
            pending.followed = fields
            pending.settles = lost.follow(pending.log, op, args, fields)
            if pending.log.in_join:
                fields["in_join"] = True
    if pending.is_one_of_the_first(fields["place"], labels.FIRST):
        fields.update(labels.facts(op, args, pending.log.steps) or {})
    if (root := getattr(options, "rootRank", None)) is not None:
        fields["root"] = root
    if (reduce_op := getattr(options, "reduceOp", None)) is not None:
        fields["reduce_op"] = _named(getattr(reduce_op, "op", reduce_op))
        if pending.log.summing is not None and (op, fields["reduce_op"]) == ("all_reduce", "SUM"):
            pending.log.summing(group, args[0][0])
    pending.begin(fields)
    return fields


def _note_pair(pending: Pending, group: Any, op: str, args: tuple[Any, ...]) -> Fields:
    """Write down a send or recv that is about to be issued; returns what was written."""
    import torch.distributed as dist

    numbers = [argument for argument in args if isinstance(argument, int)]
    peer = dist.get_process_group_ranks(group)[numbers[0]] if len(numbers) == 2 else None
    # Only gloo tells messages apart by their tags.
    tag = numbers[-1] if numbers and "gloo" in dist.get_backend(group) else 0
    fields = _common(pending, group, op, args)
    fields["peer"], fields["tag"] = peer, tag
    fields["seq"] = pending.number(pair_key(fields["group"], op, peer, tag))
    pending.begin(fields)
    return fields


def _common(pending: Pending, group: Any, op: str, args: tuple[Any, ...]) -> Fields:
    pending.threads.add(threading.get_ident())
    pending.turn()
    tensors = _tensors(args)
    fields: Fields = {
        "group": group.group_name,
        "op": op,
        "place": users_frame(),
        "way": pending.log.way(sys._getframe(2)),
        "shapes": [list(tensor.shape) for tensor in tensors],
        "dtype": _named(tensors[0].dtype) if tensors else "",
    }
    if op in EXCHANGES:
        pending.log.exchanged += sum(t.numel() for t in tensors if t.is_floating_point())
    if pending.log.exiting:
        fields["at_exit"] = True
    return fields


@lru_cache(maxsize=64)
def _named(thing: Any) -> str:
    """The last part of what torch calls it: "float32", "SUM"."""
    return str(thing).rpartition(".")[2]


def _tensors(args: tuple[Any, ...]) -> list[Any]:
    """The tensors this rank puts in: the last argument that holds any (inputs follow outputs)."""
    for argument in reversed(args):
        if hasattr(argument, "dtype"):
            return [argument]
        if isinstance(argument, (list, tuple)) and argument and hasattr(argument[0], "dtype"):
            return list(argument)
    return []
