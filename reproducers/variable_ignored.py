"""DDP109 variable-ignored: a timeout is set in an environment variable that nothing reads.

torchrun --nproc-per-node=4 reproducers/variable_ignored.py broken
"""

from __future__ import annotations

import os
from datetime import timedelta

import torch.distributed as dist

from ddpdoctor.reproducer import backend, broken, documented, fix, main, measured, own_device
from ddpdoctor.stack.process_group import session

HOUR = timedelta(hours=1)


def timeout_of(group: dist.ProcessGroup | int | None) -> timedelta:
    """Return after how long a collective of this group gives up."""
    assert isinstance(group, dist.ProcessGroup)
    timeout: timedelta = group._get_backend(own_device()).options._timeout
    return timeout


def check(expected: timedelta) -> None:
    """Assert that collectives wait that long, on every rank."""
    timeout = timeout_of(dist.group.WORLD)
    measured(f"collectives give up after {timeout}")
    timeouts: list[timedelta] = [timeout] * dist.get_world_size()
    dist.all_gather_object(timeouts, timeout)
    assert set(timeouts) == {expected}, f"collectives give up after {timeout}, not {expected}"


@broken()
def timeout_in_a_variable() -> None:
    """Set NCCL_TIMEOUT at the top of the script, as 004 says."""
    os.environ["NCCL_TIMEOUT"] = "3600"  # <-- DDP109
    dist.init_process_group(backend())
    check(HOUR)
    dist.destroy_process_group()


@documented(source="001 process hangs, 4")
def half_an_hour_in_a_variable() -> None:
    """Set NCCL_TIMEOUT=1800, which gloo seems to obey; and 60, which tells that it does not."""
    for seconds in (1800, 60):
        os.environ.update({"NCCL_TIMEOUT": str(seconds)})
        dist.init_process_group(backend())
        check(timedelta(seconds=seconds))
        dist.destroy_process_group()


@documented(source="004 further measure 1, 004 environment variables")
def an_hour_in_a_variable() -> None:
    """Set NCCL_TIMEOUT=3600 in the environment of the job."""
    os.environ.update({"NCCL_TIMEOUT": "3600"})
    dist.init_process_group(backend())
    check(HOUR)
    dist.destroy_process_group()


@fix(source="alibaba/TorchEasyRec#262")
def timeout_where_the_group_is_made() -> None:
    """Pass timeout= to init_process_group."""
    dist.init_process_group(backend(), timeout=HOUR)
    check(HOUR)
    dist.destroy_process_group()


@fix()
def timeout_of_the_session() -> None:
    """Pass the timeout to the session; a second group has its own, and does not inherit it."""
    with session(backend=backend(), timeout=HOUR):
        default = timeout_of(dist.new_group())
        assert default < HOUR, f"a second group gives up after {default}"
        assert timeout_of(dist.new_group(timeout=HOUR)) == HOUR
        check(HOUR)  # last: who leaves at once may be gone before another has joined the groups


if __name__ == "__main__":
    main()
