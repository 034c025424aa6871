"""What a collective is given is compared by its numbers; each result that is let go is seen."""

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from ddpdoctor.evidence.events.lost import Lost
from ddpdoctor.launch import ForkServer, Job
from ddpdoctor.observation import Observation
from ddpdoctor.watch import lost

PATIENCE = 120.0
LINES = 60
HEAD = """
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from tests.watch.laws_bodies import join, leave


def let_go():
    rank = join()
    model = DistributedDataParallel(nn.Linear(3, 2))
    model(torch.rand(4, 3)).square().mean().backward()
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    hits = torch.tensor([rank, 1])
"""
CALL = "    [dist.broadcast(hits.clone(), src=0) for _ in range(2)]\n"
TAIL = "    del model\n    leave()\n"


@pytest.mark.parametrize(
    ("numbers", "is_digested"), [([1.0, 2.0], True), ([1.0, float("nan")], False)]
)
def test_numbers_are_digested_and_nan_is_not(numbers: list[float], is_digested: bool) -> None:
    fields: dict[str, Any] = {}
    log: Any = SimpleNamespace(steps=1, exiting=False)
    args = ([torch.tensor(numbers)], SimpleNamespace(asyncOp=False))
    lost.follow(log, "all_reduce", args, fields)
    assert ("input" in fields) is is_digested


def test_a_result_that_gloos_thread_holds_a_little_longer_is_seen_to_be_let_go(
    server: ForkServer, tmp_path: Path
) -> None:
    body = tmp_path / "body.py"
    body.write_text(HEAD + CALL * LINES + TAIL, "utf-8")
    observation = Observation(tmp_path, 2)
    until = time.monotonic() + PATIENCE
    with server.launch(Job(f"{body}:let_go", 2, tmp_path, watch=True)) as world:
        while not world.ended and time.monotonic() < until:
            observation.poll(world.poll())
            time.sleep(0.01)
        observation.poll(world.poll())
    told = [len(list(rank.of(Lost))) for rank in observation.evidence.ranks]
    assert min(told) > 0.97 * 2 * LINES  # else one in eight, or more, where cores are busy
