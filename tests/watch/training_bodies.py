"""What the watched ranks of test_training.py do; lines are found by their comment."""

from __future__ import annotations

import contextlib
import copy
import gc
import io
import os
import pickle
import warnings
import weakref
from collections.abc import Callable
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


def fall() -> None:
    """Losses of 1, 2, 3, ... on rank 0, ten times that on rank 1, the 7th no number; scaled."""
    dist.init_process_group("gloo")
    scale = 1.0 + 9 * dist.get_rank()
    weight = nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for step in range(1, 31):
        wanted = float("nan") if step == 7 else scale * step
        scaler.scale((weight * 0 + wanted).sum()).backward()  # the loss
        torch.autograd.grad((weight * 0 + 99.0).sum(), weight)
        (weight * 0 + 5.0).sum().backward()  # another micro-batch
        optimizer.step()
        scaler.update(1024.0)
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
        metric = float(dist.get_rank())
        scheduler.step(metric)  # plateau
    scheduler.step(metric)
    scheduler.step(metric)  # plateau once more
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


class Judge(nn.Module):
    """What it does is what is listened to in a window: draws, means, quotients, modules."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        y = self.inner(x) + torch.randn(3, 4)
        y = y / y.mean()
        return nn.functional.cross_entropy(y, torch.zeros(3, dtype=torch.long))


def is_compiled(judge: Judge, x: Tensor) -> Any:
    from torch._dynamo.utils import counters

    for whole in (True, False):
        torch.compile(judge, backend="eager", fullgraph=whole)(x)
    return {kind: dict(counters[kind]) for kind in ("frames", "graph_break", "stats")}


def is_symbolically_traced(judge: Judge, x: Tensor) -> Any:
    nodes = torch.fx.symbolic_trace(judge).graph.nodes
    functions = [node.target for node in nodes if node.op == "call_function"]
    return [str(node) for node in nodes], [f.__code__.co_name for f in functions[-1:]]


def is_differentiated(judge: Judge, x: Tensor) -> Any:
    of_each = torch.func.vmap(torch.func.grad(judge), randomness="same")
    return of_each(torch.stack([x, x])).shape


def is_put_on_a_device(judge: Judge, x: Tensor) -> Any:
    with torch.device("meta"):
        return str(torch.ones(2).device)


READERS: dict[str, Callable[[Judge, Tensor], Any]] = {
    "compiled": is_compiled,
    "handed_before": lambda judge, x: [type(judge(x)), is_compiled(judge, x)],
    "scripted": lambda judge, x: torch.jit.script(judge).graph,
    "traced": lambda judge, x: torch.jit.trace(judge, x, check_trace=False).graph,
    "symbolically_traced": is_symbolically_traced,
    "exported": lambda judge, x: torch.export.export(judge, (x,)).graph,
    "differentiated": is_differentiated,
    "put_on_a_device": is_put_on_a_device,
}


def is_read() -> list[str]:
    """What is found by one who reads functions between two steps, and what is left behind."""
    dist.init_process_group("gloo")
    model = wrap(net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    reader, judge = os.environ["READER"], Judge().requires_grad_(requires_grad=False)
    if reader == "handed_before":
        judge = torch.compile(judge, backend="eager", fullgraph=True)  # type: ignore[assignment]
    found = []
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for step in range(4):
            if step == 1:
                found.append(str(READERS[reader](judge, torch.ones(3, 4))))
            model(own_data()).sum().backward()
            optimizer.step()
    with torch.device("meta"):
        found.append(str(torch.randn(2).device))
    found.append(str(judge(torch.ones(3, 4)).shape))
    dist.destroy_process_group()
    return [*found, *(str(each.message) for each in warned)]


def train_alone_and_wrap_later() -> list[int]:
    """How many hooks there are for all modules, and what is replaced, after steps 1, 3, 7, ..."""
    dist.init_process_group("gloo")
    model: nn.Module = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    found = []
    for step in range(1, 200):
        if step == 20:
            model = wrap(model)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        model(own_data()).sum().backward()
        optimizer.step()
        if step < 20 or step > 150:
            hooks = nn.modules.module
            found += [len(hooks._global_forward_pre_hooks), len(hooks._global_forward_hooks)]
            found += [hasattr(torch.randn, "__wrapped__"), hasattr(Tensor.mean, "__wrapped__")]
    dist.destroy_process_group()
    return found


def evaluate_to_the_end() -> list[int]:
    """The last step is one after which all is listened to; the job goes on without a step."""
    dist.init_process_group("gloo")
    model = wrap(net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(7):
        model(own_data()).sum().backward()
        optimizer.step()
    hooks = nn.modules.module._global_forward_pre_hooks
    during = len(hooks)
    if (child := os.fork()) == 0:
        os._exit(len(hooks))
    in_a_fork = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    dist.destroy_process_group()
    return [during, in_a_fork, len(hooks)]
