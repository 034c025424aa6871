"""Starts ranks, supervises them, leaves no orphan.

The doctor's process holds a `ForkServer`; its server process has imported torch once. Each launch
gets a keeper, forked from the server, and the keeper forks the ranks:

    doctor ── server ── keeper of world 1 ── rank 0, rank 1, ...
                   └─── keeper of world 2 ── rank 0, rank 1, ...

A keeper is the subreaper of its world: whatever a rank leaves behind, daemonised or not, becomes
the keeper's child, so "all processes of this world" needs no marker and no guess. Doctor and keeper
share one socket; when the doctor's end closes, for whatever reason, the keeper ends its world, and
the server clears away the one folder that all of them write into.

Ranks are forks, so they differ from ranks under torchrun in this: all have the server's hash seed
(sets iterate alike on all of them), and modules are not torn down when they end.

May import `evidence` and `environment.facts`, and `watch` inside a rank. The doctor's side imports
no torch.
"""

from ddpdoctor.launch.fork_server import ForkServer
from ddpdoctor.launch.job import Job, LaunchError, Lost, NoRoom
from ddpdoctor.launch.world import Rank, WorkerGroup

__all__ = ["ForkServer", "Job", "LaunchError", "Lost", "NoRoom", "Rank", "WorkerGroup"]
