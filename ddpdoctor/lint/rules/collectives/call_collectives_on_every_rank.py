"""Collective under a rank condition.

## What it does
Finds collectives (`barrier`, `all_reduce`, `broadcast`, ...) that only some ranks reach: under `if
rank == 0:`, in one arm of a conditional, after a `return`, `raise` or `continue` that only some
ranks take, also where the collective stands in a function that is called there.

## Why is this bad?
A collective waits for every rank of its group. The ranks that reach it wait for those that do not,
until the timeout (30 minutes for gloo, 10 for NCCL): the job hangs, at full price.

## Example
```python
if rank == 0:
    save(model)
    dist.barrier()
```

## Use instead
```python
if rank == 0:
    save(model)
dist.barrier()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ddpdoctor.lint.engine.guards import is_expected_to_raise
from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.rank import RankGuard, rank_guards
from ddpdoctor.lint.engine.trees import is_constant
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP401"
NAME = "rank-conditional-collective"
CONFIDENCE: Confidence = "certain"
WORDS = (
    "rank",
    "RANK",
    "main",
    "master",
    "primary",
    "chief",
    "is_global_zero",
    "SLURM_PROCID",
    "spawn",
)
FACTS = ("collectives",)

_WHO = {
    "main": "the main rank alone",
    "others": "every rank but the main one",
    "some": "some ranks only",
}


@dataclass(frozen=True, slots=True)
class _Case:
    call: ast.Call
    operation: str
    chain: tuple[str, ...]
    sure: bool
    guard: RankGuard


def check(module: Module) -> Iterator[Hit]:
    """Yield the collectives that only some ranks reach."""
    cases = list(_cases(module))
    for case in cases:
        if _is_paired(module, case, cases):
            continue
        who = _WHO[case.guard.side]
        through = "" if not case.chain else f" (through {_callee(case)})"
        sure = case.sure and case.guard.test.pure
        yield Hit(
            case.call,
            f"{_operation(case)} is reached by {who}{through}: the other ranks never join it",
            notes=(f"it {case.guard.describe()}", *case.chain),
            help="let every rank call it: move it out of the condition",
            confidence="certain" if sure else "likely",
        )


def _cases(module: Module) -> Iterator[_Case]:
    direct = dict(module.collectives)
    for call in module.calls:
        if operation := direct.get(call):
            if guard := _guard(module, call):
                yield _Case(call, operation, (), True, guard)
        elif (key := module.callee(call)) and (reach := module.project.reaches.get(key)):
            if any(is_constant(each.value, False, None) for each in call.keywords):
                continue  # evaluate(..., distributed=False)
            if guard := _guard(module, call):
                yield _Case(call, reach.operation, reach.chain, reach.sure, guard)


def _guard(module: Module, call: ast.Call) -> RankGuard | None:
    """The innermost rank condition that keeps some ranks away, unless an error is the aim."""
    if is_expected_to_raise(module, call):
        return None
    for each in rank_guards(module, call):
        if each.guard.kind == "exit" and not each.test.pure:
            continue
        if any(_asks_for_one_process(other) for other in each.test.others):
            continue
        if each.guard.kind == "exit" and isinstance(each.guard.node, ast.Raise):
            continue  # an error path: the launcher ends the job
        return each
    return None


def _asks_for_one_process(condition: str) -> bool:
    lowered = condition.lower()
    return any(word in lowered for word in ("fsdp", "deepspeed", "parallel", "group", "shard"))


def _is_paired(module: Module, case: _Case, cases: list[_Case]) -> bool:
    """Whether the ranks that this call misses meet it elsewhere: main process first, if/else."""
    function = module.scope(case.call)
    return any(
        other.operation == case.operation
        and other.call is not case.call
        and module.scope(other.call) is function
        and (
            {other.guard.side, case.guard.side} == {"main", "others"}
            or (
                other.guard.guard.node is case.guard.guard.node
                and other.guard.guard.holds != case.guard.guard.holds
            )
        )
        for other in cases
    )


def _operation(case: _Case) -> str:
    return case.operation if case.operation.endswith(")") else f"{case.operation}()"


def _callee(case: _Case) -> str:
    return case.chain[0].split(" calls ")[0]
