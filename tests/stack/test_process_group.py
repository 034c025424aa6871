"""Joining and leaving the process group, and what is refused."""

from __future__ import annotations

import gc
import os
import time
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from ddpdoctor.stack.errors import LauncherError
from ddpdoctor.stack.process_group import lost_a_peer, session, unwrap, wrap


@pytest.fixture
def no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("no_launcher")
@pytest.mark.parametrize("distributed", [None, False])
def test_a_plain_process_is_a_world_of_one_without_a_group(distributed: bool | None) -> None:
    with session(distributed=distributed, backend="gloo") as world:
        assert (world.rank, world.world_size, world.backend) == (0, 1, None)
        assert world.is_main
        assert world.device == torch.device("cpu")
        assert not dist.is_initialized()
        model = nn.Linear(2, 2)
        assert wrap(model, world) is model


@pytest.mark.usefixtures("no_launcher")
def test_insisting_on_ranks_without_a_launcher_names_torchrun() -> None:
    with pytest.raises(LauncherError, match="torchrun"), session(distributed=True):
        pass


def test_lone_copies_under_a_launcher_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "4")
    with pytest.raises(LauncherError, match="started 4 ranks"), session(distributed=False):
        pass


@pytest.mark.parametrize("value", ["", "two", "-1"])
def test_a_launcher_variable_that_is_no_number_is_named(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", value)
    with pytest.raises(LauncherError, match=f"WORLD_SIZE is '{value}'"), session():
        pass


def test_a_backend_that_is_not_offered_is_refused() -> None:
    with pytest.raises(LauncherError, match="no backend 'mpi'"), session(backend="mpi"):
        pass


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a host without a GPU")
def test_nccl_without_a_gpu_for_this_rank_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(LauncherError, match="LOCAL_RANK 1, but this host shows 0"):
        session(backend="nccl").__enter__()
    monkeypatch.delenv("RANK")
    with pytest.raises(LauncherError, match="needs a GPU, and this host shows none"):
        session(backend="nccl").__enter__()


@pytest.mark.distributed(nproc=2, backend=None)
def test_a_session_in_a_session_joins_the_group_and_leaves_it_standing() -> None:
    with session(backend="gloo") as outer:
        with session(backend="gloo", distributed=True) as inner:
            assert inner == outer
            assert (inner.rank, inner.world_size) == (dist.get_rank(), 2)
        assert dist.is_initialized()
    assert not dist.is_initialized()


@pytest.mark.distributed(nproc=2, backend=None)
def test_the_group_goes_when_the_wrapper_has_gone() -> None:
    def train() -> None:
        net = wrap(nn.Linear(2, 2), world)
        assert unwrap(net).weight.shape == (2, 2)
        net(torch.ones(1, 2)).sum().backward()
        net.itself = [net]  # a cycle, which only the garbage collector ends

    gc.disable()
    with session(backend="gloo") as world:
        train()
    assert not dist.is_initialized()


@pytest.mark.distributed(nproc=2, backend=None)
def test_the_group_stays_while_a_wrapper_lives() -> None:
    # destroy_process_group() here would hang this process in about half of the launches.
    with session(backend="gloo") as world:
        net = wrap(nn.Linear(2, 2), world)
        net(torch.ones(1, 2)).sum().backward()
    assert isinstance(net, DistributedDataParallel)
    assert dist.is_initialized()


@pytest.mark.distributed(nproc=2, backend=None)
def test_a_rank_that_leaves_on_an_error_waits_for_nobody(shared_path: Path) -> None:
    left = shared_path / "left"
    if os.environ["RANK"] == "0":
        with pytest.raises(ZeroDivisionError), session(backend="gloo"):
            raise ZeroDivisionError
        assert dist.is_initialized()
        left.touch()
    else:
        with session(backend="gloo"):
            while not left.exists():  # until the test's own deadline
                time.sleep(0.01)


@pytest.mark.parametrize(
    ("error", "is_peers"),
    [
        (RuntimeError("[../gloo/transport/tcp/pair.cc:534] Connection closed by peer"), True),
        (
            RuntimeError("[enforce fail at gloo/transport/tcp/device.cc:84] no address for: a"),
            False,
        ),
        (dist.DistNetworkError("failed to recv, got 0 bytes"), True),
        (dist.DistNetworkError("The server socket has failed to listen on any address"), False),
        (dist.DistStoreError("wait timeout after 3000ms, keys: /a"), True),
        (dist.DistBackendError("ncclRemoteError: A call failed possibly due to a network"), True),
        (dist.DistBackendError("socketProgress: Connection closed by remote peer node2"), True),
        (dist.DistBackendError("[Rank 1] Watchdog caught collective operation timeout"), True),
        (dist.DistBackendError("NCCL communicator was aborted on rank 1"), True),
        (dist.DistBackendError("NCCL error: invalid usage. Duplicate GPU detected"), False),
        (dist.DistBackendError("NCCL error: unhandled cuda error. Out of memory"), False),
        (dist.DistBackendError("NCCL error: unhandled system error. No space in /dev/shm"), False),
        (RuntimeError("DataLoader timed out after 5 seconds"), False),
        (RuntimeError("CUDA error: the launch timed out and was terminated"), False),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
    ],
)
def test_a_fault_of_ones_own_is_not_blamed_on_a_peer(error: RuntimeError, is_peers: bool) -> None:
    assert lost_a_peer(error) == is_peers
