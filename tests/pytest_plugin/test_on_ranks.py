"""Marked tests that hold: what a body, its fixtures and its parameters may rely on in a rank."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from tests.thorough import first_of

pytestmark = pytest.mark.distributed


@pytest.fixture
def mean_of_ranks() -> Iterator[torch.Tensor]:
    """A fixture that communicates, before and after the test."""
    mean = torch.tensor(float(dist.get_rank()))
    dist.all_reduce(mean)
    yield mean / dist.get_world_size()
    dist.barrier()


@pytest.fixture(scope="module", autouse=True)
def process_that_evaluated_the_fixtures() -> int:
    return os.getpid()


def everybodys(value: Any) -> list[Any]:
    gathered: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(gathered, value)
    return gathered


@pytest.mark.distributed(nproc=3)
def test_fixtures_are_evaluated_in_every_rank(
    mean_of_ranks: torch.Tensor, process_that_evaluated_the_fixtures: int
) -> None:
    assert dist.get_world_size() == 3
    assert mean_of_ranks == 1.0
    assert process_that_evaluated_the_fixtures == os.getpid()
    assert len(set(everybodys(os.getpid()))) == 3


def test_shared_path_is_one_folder_and_tmp_path_is_each_ranks_own(
    shared_path: Path, tmp_path: Path
) -> None:
    (shared_path / f"{dist.get_rank()}").touch()
    dist.barrier()
    assert sorted(path.name for path in shared_path.iterdir()) == ["0", "1"]
    assert list(tmp_path.iterdir()) == []
    assert len(set(everybodys(str(tmp_path)))) == 2


@pytest.mark.parametrize("value", first_of(["a [strange] :: value", 1]))
def test_parameters_reach_the_ranks(value: object, request: pytest.FixtureRequest) -> None:
    assert everybodys(value) == [value, value]
    assert request.node.callspec.params["value"] == value


@pytest.mark.distributed(nproc=[1, 2])
def test_a_list_of_numbers_of_ranks_makes_one_test_of_each(
    request: pytest.FixtureRequest,
) -> None:
    assert f"nproc{dist.get_world_size()}" in request.node.name


@pytest.mark.distributed(backend=None)
def test_without_a_backend_the_test_makes_its_own_group() -> None:
    assert not dist.is_initialized()
    dist.init_process_group("gloo")
    dist.barrier()
    dist.destroy_process_group()


@pytest.mark.parametrize("attempt", first_of(range(3)))
def test_a_model_may_be_alive_when_the_test_ends(attempt: int) -> None:
    model = DistributedDataParallel(torch.nn.Linear(4, 4))
    model(torch.ones(2, 4)).sum().backward()


@pytest.fixture
def is_done(shared_path: Path) -> Iterator[Path]:
    """What is there once rank 0 has returned from the test."""
    yield shared_path / "is done"
    if dist.get_rank() == 0:
        (shared_path / "is done").touch()


def test_a_rank_that_is_done_stays_until_the_others_are(is_done: Path) -> None:
    first = psutil.Process(everybodys(os.getpid())[0])
    if dist.get_rank() == 1:
        while not is_done.exists():
            time.sleep(0.01)
        time.sleep(0.5)  # in which it would end
        assert first.status() != psutil.STATUS_ZOMBIE


def test_output_can_be_captured_in_a_rank(capsys: pytest.CaptureFixture[str]) -> None:
    print("from rank", dist.get_rank())
    assert capsys.readouterr().out == f"from rank {dist.get_rank()}\n"


@pytest.mark.xfail(strict=True, reason="rank 1 fails", raises=ZeroDivisionError)
def test_an_expected_failure_of_one_rank_is_expected() -> None:
    assert 1 / (1 - dist.get_rank())


class TestInAClass:
    def setup_method(self) -> None:
        self.rank = dist.get_rank()

    def test_the_classs_own_setup_runs_in_the_rank(self) -> None:
        assert self.rank == dist.get_rank()
