"""How many processes load batches, and whose signals they heed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ddpdoctor.stack.loading import MOST_WORKERS, default_workers
from ddpdoctor.stack.process_group import World
from ddpdoctor.stack.stopping import on_sigterm

GPU = World(0, 0, 4, torch.device("cuda", 0), "nccl")


@given(st.integers(1, 200), st.integers(1, 16))
def test_the_ranks_of_a_host_share_its_cpus(cpus: int, ranks: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "sched_getaffinity", lambda pid: set(range(cpus)))
        patch.setenv("LOCAL_WORLD_SIZE", str(ranks))
        workers = default_workers(GPU)
    assert 0 <= workers <= MOST_WORKERS
    assert ranks * (workers + 1) <= cpus or workers == 0
    assert workers == MOST_WORKERS or ranks * (workers + 2) > cpus


def test_on_the_cpu_the_training_needs_them_all() -> None:
    assert default_workers(World(0, 0, 1, torch.device("cpu"), None)) == 0


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_a_worker_outlives_a_sigterm_to_all_and_heeds_that_of_its_rank(method: str) -> None:
    # In a process of its own, with which multiprocessing's own servers end.
    subprocess.run([sys.executable, "-m", "tests.stack.signalled_worker", method], check=True)


def test_sigterm_is_noted_once_and_the_handler_before_comes_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with on_sigterm() as request:
        assert not request.received
        os.kill(os.getpid(), signal.SIGTERM)
        assert request.received
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL  # a second one kills
    assert signal.getsignal(signal.SIGTERM) is before
