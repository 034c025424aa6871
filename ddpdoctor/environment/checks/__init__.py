"""Findings about the facts: pure functions, each about one kind of fault.

A finding is an error or a warning only if something will go wrong because of it. What is merely
odd is info, and says that it is harmless, and when it would not be.
"""

from __future__ import annotations

from ddpdoctor.catalog import Finding
from ddpdoctor.environment.checks import (
    conflicts,
    devices,
    host,
    launch,
    names,
    nccl_file,
    nccl_start,
    network,
    software,
    values,
)
from ddpdoctor.environment.model import Environment
from ddpdoctor.report.gravity import gravest_first

_CHECKS = (
    software.unusable_torch,
    software.not_distributed,
    software.without_numpy,
    software.nccl_mismatch,
    software.detail_debug,
    values.misread,
    values.refused,
    values.unusable_files,
    names.ignored,
    names.unknown,
    names.renamed,
    names.obsolete,
    names.left_on,
    conflicts.conflicting,
    nccl_file.overruled,
    nccl_file.unread,
    nccl_start.no_fast_network,
    nccl_start.no_such_network,
    nccl_start.calls_that_do_not_wait,
    launch.rank_outside_world,
    launch.incomplete,
    launch.local_rank_outside,
    launch.node_rank_outside,
    launch.outside_srun,
    launch.set_by_hand,
    launch.leaked,
    launch.port_taken,
    launch.port_ignored,
    launch.low_port,
    launch.no_port,
    launch.interpreter,
    launch.unresolved_master,
    launch.loopback_master,
    network.unanswered_master,
    network.no_ipv6,
    network.inner_interfaces,
    launch.double_launch,
    launch.disagreeing,
    network.loopback_down,
    network.wrong_interface,
    network.hostname,
    devices.silent_driver,
    devices.cuda_fails,
    devices.hidden,
    devices.too_few,
    devices.without_support,
    devices.without_nccl,
    devices.unlike,
    devices.unhealthy,
    devices.divided,
    devices.far_from_network,
    devices.old_driver,
    devices.in_use,
    devices.peers_apart,
    devices.peers_claimed,
    host.too_many_threads,
    host.little_shared_memory,
    host.low_limits,
    host.too_little_memory,
    host.fabric,
    host.fabric_addresses,
    host.fabric_left_out,
    host.kernel,
    host.clock,
    host.checkpoint_folder,
)


def findings(environment: Environment) -> list[Finding]:
    """Everything that is wrong or odd, worst first; the same facts give the same list."""
    found = [one for check in _CHECKS for one in check(environment)]
    return gravest_first(found, by_code=True)
