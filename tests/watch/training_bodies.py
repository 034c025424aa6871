"""What the watched ranks of test_training.py do; lines are found by their comment."""

from __future__ import annotations

import contextlib
import copy
import gc
import io
import os
import pickle
import weakref
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim.lr_scheduler import ReduceLROnPlateau

FOLDER = Path(os.environ.get("DDPDOCTOR_RUN_DIR", "."))


KEPT: list[nn.Module] = []
"""Models that outlive their process group: torch's teardown of gloo may hang on them else."""


def wrap(module: nn.Module) -> DistributedDataParallel:
    KEPT.append(model := DistributedDataParallel(module))
    return model


def net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2))


def own_data(rows: int = 3) -> Tensor:
    return torch.randn(rows, 4, generator=torch.Generator().manual_seed(dist.get_rank()))


def accumulate() -> None:
    """Windows of two micro-batches, of which the last synchronises; the third window is short."""
    dist.init_process_group("gloo")
    model = wrap(net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for window in range(3):
        if window < 2:
            with model.no_sync():
                model(own_data()).sum().backward()  # held
        model(own_data()).sum().backward()  # reduced
        optimizer.step()  # step
        optimizer.zero_grad()
    dist.destroy_process_group()


def train_on() -> None:
    """A hundred windows of two micro-batches; after 70 of them another model is trained as well."""
    dist.init_process_group("gloo")
    model, other = wrap(net()), wrap(net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    second = torch.optim.SGD(other.parameters(), lr=0.01)
    for window in range(100):
        with model.no_sync():
            model(own_data()).sum().backward()
        model(own_data()).sum().backward()
        optimizer.step()
        if window >= 69:
            other(own_data()).sum().backward()
            second.step()
    dist.destroy_process_group()


def go_past_the_wrapper() -> None:
    dist.init_process_group("gloo")
    model = wrap(net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for _ in range(4):
        model.module(own_data()).sum().backward()  # past
        optimizer.step()
    hooks = nn.modules.module._global_forward_pre_hooks
    assert not hooks, "the probe has been taken away"
    dist.destroy_process_group()


def all_at_once() -> None:
    """A plateau, a copy from before the wrap, a parameter of nobody, a late one, dropout."""
    dist.init_process_group("gloo")
    torch.manual_seed(7 + dist.get_rank())  # seed
    inner = nn.Sequential(nn.Linear(4, 6), nn.Dropout(0.5), nn.Linear(6, 2))
    kept = copy.deepcopy(inner)  # copy
    model = wrap(inner)
    inner[0].register_parameter("extra", nn.Parameter(torch.ones(4)))  # added
    outside = nn.Linear(2, 1)
    optimizer = torch.optim.SGD([*model.parameters(), *outside.parameters()], lr=0.5)
    scheduler = ReduceLROnPlateau(optimizer)
    for _ in range(2):
        x = own_data() * inner[0].extra
        outside(model(x)).sum().backward()
        optimizer.step()
        scheduler.step(float(dist.get_rank()))  # plateau
    assert kept is not inner
    dist.destroy_process_group()


def views_of_one_backward() -> None:
    """Several passes of one line, metrics shared after each, and one backward for all of them."""
    dist.init_process_group("gloo")
    model = wrap(net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for _ in range(3):
        losses = []
        for _ in range(4):
            losses.append(model(own_data()).sum())
            dist.all_reduce(losses[-1].detach().clone())
        torch.stack(losses).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()


def steps_that_raise() -> None:
    """A step that fails and is tried again does not blind the watch; nor does one in another."""
    dist.init_process_group("gloo")
    model = wrap(net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    outer = Outer(optimizer)
    model(own_data()).sum().backward()
    with contextlib.suppress(ArithmeticError):
        optimizer.step(closure=fail)
    optimizer.zero_grad()
    for _ in range(2):
        model(own_data()).sum().backward()
        outer.step()
        outer.zero_grad()
    dist.destroy_process_group()


def fail() -> float:
    raise ArithmeticError


class Outer(torch.optim.Optimizer):
    """An optimizer that lets another one do the step."""

    def __init__(self, inner: torch.optim.Optimizer) -> None:
        self.inner = inner
        super().__init__(inner.param_groups, {})

    def step(self, closure: Any = None) -> None:
        self.inner.step()


def keep_graphs() -> None:
    dist.init_process_group("gloo")
    model = wrap(net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    total = torch.zeros(())
    for _ in range(8):
        loss = model(own_data()).sum()
        loss.backward()
        optimizer.step()
        total = total + (loss if FOLDER.name == "kept" else loss.detach())
    dist.destroy_process_group()


def leave_nothing_behind() -> None:
    """The model, its copy and its optimizer can be freed, pickled and copied as ever."""
    dist.init_process_group("gloo")
    before = torch.get_rng_state()
    inner = nn.Linear(4, 2)
    torch.set_rng_state(before)
    model = DistributedDataParallel(inner)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        optimizer.zero_grad()
        output = model(own_data())
        output.sum().backward()
        optimizer.step()
    assert torch.equal(torch.get_rng_state(), before), "no random number has been drawn"
    again = pickle.loads(pickle.dumps(inner))
    assert [name for name, _ in again.named_parameters()] == ["weight", "bias"]
    torch.save(model.state_dict(), io.BytesIO())
    twin = copy.deepcopy(inner)
    alive = [weakref.ref(each) for each in (model, inner, optimizer, output, twin)]
    del model, inner, optimizer, output, twin, again
    gc.collect()
    assert [each() for each in alive] == [None] * 5
    dist.destroy_process_group()


def compiled() -> dict[str, Any]:
    """What Dynamo counts while a wrapper, and a function that calls one, are compiled."""
    from torch._dynamo.utils import counters

    dist.init_process_group("gloo")
    inner = wrap(net())
    model = torch.compile(inner, backend="eager")
    optimizer = torch.optim.SGD(inner.parameters(), lr=0.5)

    @torch.compile(backend="eager")
    def loss_of(x: Tensor) -> Tensor:
        return inner(x).sum() * 2

    for _ in range(3):
        model(own_data()).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    for _ in range(3):
        loss_of(own_data()).backward()
        nn.utils.clip_grad_norm_(inner.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    counted = {kind: dict(counters[kind]) for kind in ("frames", "graph_break", "stats")}
    dist.destroy_process_group()
    return counted
