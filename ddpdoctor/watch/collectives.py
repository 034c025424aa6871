"""Records every collective that Python code issues, and which of them are still outstanding.

The methods of `ProcessGroup` are wrapped, not the functions of `torch.distributed`: all of those
end in these, they carry root and reduce op, and torch.compile recognises the functions by identity.
What DDP issues from C++ (buckets, buffers) does not pass here; the C++ flight recorder knows it.
"""

from __future__ import annotations

import json
import threading
import time
from typing import Any

from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.log import Log
from ddpdoctor.watch.places import users_frame

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
    "send": "send",
    "recv": "recv",
    "recv_anysource": "recv",
}


class Pending:
    """The collectives of this rank that have been issued and have not completed.

    `kept` knows place, root and reduce op of those that Python issued; the flight recorder, where
    this torch has it, knows all of them and whether they completed.
    """

    def __init__(self) -> None:
        self.kept: dict[int, dict[str, Any]] = {}
        self.threads: set[int] = set()

    def outstanding(self) -> list[dict[str, Any]]:
        """Oldest first, each with the fields of `evidence.Collective`."""
        kept = list(self.kept.values())
        recorded = _flight_record()
        if recorded is None:
            return kept
        by_number = {(c["group"], c["seq"]): c for c in kept}
        return [by_number.get((c["group"], c["seq"]), c) for c in recorded]

    def issued(self) -> dict[str, int]:
        """How many collectives this rank has issued, by name of the group."""
        from torch.distributed import distributed_c10d

        groups: Any = distributed_c10d._world.pg_map
        return {group.group_name: group._get_sequence_number_for_group() for group in groups}


def _flight_record() -> list[dict[str, Any]] | None:
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
            "seq": entry["p2p_seq_id"] if entry["is_p2p"] else entry["collective_seq_id"],
            "op": entry["profiling_name"].split(":")[-1],
            "begun": (entry["time_created_ns"] - age) / 1e9,
            "shapes": entry["input_sizes"],
            "dtype": entry["input_dtypes"][0] if entry["input_dtypes"] else "",
        }
        for entry in entries
        if not entry["retired"]
    ]


def install(log: Log) -> Pending:
    """Wrap `ProcessGroup` and `Work.wait` of this process."""
    from torch._C import _distributed_c10d

    pending = Pending()
    for method, op in _OPS.items():
        if hasattr(_distributed_c10d.ProcessGroup, method):
            _wrap_method(_distributed_c10d.ProcessGroup, method, op, log, pending)
    _wrap_wait(_distributed_c10d.Work, pending)
    return pending


def _wrap_method(group_type: Any, method: str, op: str, log: Log, pending: Pending) -> None:
    original = getattr(group_type, method)

    def issue(group: Any, *args: Any, **kwargs: Any) -> Any:
        fields = _note(log, group, op, args, kwargs)
        pending.threads.add(threading.get_ident())
        work = original(group, *args, **kwargs)
        if work is not None and fields is not None:
            pending.kept[id(work)] = {**fields, "begun": time.monotonic()}
        return work

    setattr(group_type, method, issue)


def _wrap_wait(work_type: Any, pending: Pending) -> None:
    original = work_type.wait

    def wait(work: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(work, *args, **kwargs)
        finally:
            pending.kept.pop(id(work), None)

    work_type.wait = wait


@harmless
def _note(
    log: Log, group: Any, op: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """Write down a collective that is about to be issued; returns what was written."""
    tensors = _tensors(args)
    options = kwargs.get("opts", args[-1] if args else None)
    fields: dict[str, Any] = {
        "group": group.group_name,
        "seq": group._get_sequence_number_for_group() + 1,
        "op": op,
        "place": users_frame(),
        "shapes": [list(tensor.shape) for tensor in tensors],
        "dtype": str(tensors[0].dtype).removeprefix("torch.") if tensors else "",
    }
    if (root := getattr(options, "rootRank", None)) is not None:
        fields["root"] = root
    if (reduce_op := getattr(options, "reduceOp", None)) is not None:
        fields["reduce_op"] = str(getattr(reduce_op, "op", reduce_op)).rpartition(".")[2]
    if log.exiting:
        fields["at_exit"] = True
    log.write("collective", **fields)
    return fields


def _tensors(args: tuple[Any, ...]) -> list[Any]:
    """The tensors this rank puts in: the last argument that holds any (inputs follow outputs)."""
    for argument in reversed(args):
        if hasattr(argument, "dtype"):
            return [argument]
        if isinstance(argument, (list, tuple)) and argument and hasattr(argument[0], "dtype"):
            return list(argument)
    return []
