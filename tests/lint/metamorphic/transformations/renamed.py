"""All names of the author's own become v0, v1, ….

A name stays where it is all that is known: an imported one, a library's, one that also stands in
a string, a keyword of an unknown callee, and the parameters of functions that nobody here calls.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterable, Iterator

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler, IterableDataset

from tests.lint.metamorphic.program import Program
from tests.lint.metamorphic.scopes import (
    BUILTINS,
    Function,
    bound,
    imported,
    own_nodes,
    parameters,
    strings,
)

_LIBRARY = (
    *(torch, dist, torch.Tensor, DistributedDataParallel, torch.optim.SGD, dist.Work),
    *(torch.optim.lr_scheduler.LambdaLR, DataLoader, Dataset, IterableDataset, DistributedSampler),
    *(torch.autograd.Function, argparse.ArgumentParser, str, dict, list, set, type, Exception),
)
_HOOKS = "prepare setup teardown batch_idx batch"
_TAKEN = BUILTINS.union(_HOOKS.split(), *(dir(each) for each in _LIBRARY))
# Fields that a library's objects have as well: renamed where only `self` of a plain class has them.
_FIELDS = """
    dataset batch_size num_workers sampler batch_sampler generator epoch rank num_replicas seed
    shuffle total_size num_samples module device_ids weight bias in_features out_features state
    param_groups defaults last_epoch base_lrs world_size data shape name model optimizer device
"""
_SHARED = frozenset(_FIELDS.split())


def transform(program: Program) -> None:
    attributes = _attributes(program)
    names = _names(program, attributes)
    new = {name: f"v{number}" for number, name in enumerate(dict.fromkeys([*names, *attributes]))}
    ours = _ours(program)
    for node in list(program.nodes()):
        if isinstance(node, ast.Call) and _is_ours(node, ours):
            for keyword in node.keywords:
                keyword.arg = new.get(keyword.arg or "", keyword.arg)
    for node in program.nodes():
        match node:
            case ast.Name():
                node.id = new.get(node.id, node.id)
            case ast.Attribute(value=ast.Name(id=module)) if module in program.modules():
                node.attr = new.get(node.attr, node.attr)
            case ast.Attribute() if node.attr in attributes:
                node.attr = new[node.attr]
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                node.name = new.get(node.name, node.name)
            case ast.arg():
                node.arg = new.get(node.arg, node.arg)
            case ast.ExceptHandler(name=str(name)):
                node.name = new.get(name, name)
            case ast.Global() | ast.Nonlocal():
                node.names = [new.get(name, name) for name in node.names]
            case ast.ImportFrom() if node.module in program.modules():
                for each in node.names:
                    each.name = new.get(each.name, each.name)
                    each.asname = each.asname and new.get(each.asname, each.asname)


def _names(program: Program, attributes: set[str]) -> list[str]:
    """Variables, parameters, functions and classes that can be renamed, in the order they stand."""
    kept = BUILTINS | program.modules() | _unknown_keywords(program) | _of_uncalled(program)
    kept |= _members(program) - attributes | _imported(program)
    found = dict.fromkeys(_all_bound(program))
    kept |= _looked_up(program, found)
    return [name for name in found if name not in kept and not name.startswith("__")]


def _looked_up(program: Program, names: Iterable[str]) -> set[str]:
    """Those that are asked of a module that a call has found, or by a text that is put together."""
    kept: set[str] = set()
    pieces: list[ast.expr] = []
    for node in program.nodes():
        match node:
            case ast.Attribute(value=ast.Call()):
                kept.add(node.attr)
            case ast.JoinedStr():
                pieces += node.values
            case ast.BinOp():
                pieces += node.left, node.right
    texts = {each.value for each in pieces if isinstance(each, ast.Constant)}
    parts = tuple(text for text in texts if isinstance(text, str) and text)
    return kept | {name for name in names if name.startswith(parts) or name.endswith(parts)}


def _all_bound(program: Program) -> Iterator[str]:
    scopes = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    for node in program.nodes():
        if isinstance(node, scopes):
            yield from sorted(bound(node))
        elif isinstance(node, ast.comprehension):
            yield from sorted(
                each.id for each in ast.walk(node.target) if isinstance(each, ast.Name)
            )


def _members(program: Program) -> set[str]:
    """What stands in the bodies of classes: methods and fields."""
    classes = [node for node in program.nodes() if isinstance(node, ast.ClassDef)]
    return set().union(*(bound(each) for each in classes))


def _attributes(program: Program) -> set[str]:
    """Fields and methods of the author's classes that nothing of a library's can be."""
    stored, of_modules = set(), set()
    outside = _imported(program)
    for node in program.nodes():
        match node:
            case ast.Attribute(value=ast.Name(id="self"), ctx=ast.Store()):
                stored.add(node.attr)
            case ast.Attribute(value=ast.Name(id=name)) if name in outside:
                of_modules.add(node.attr)
    found = {name for name in stored | _members(program) if not name.startswith("__")}
    return found - _TAKEN - of_modules - strings(program) - _shared(program)


def _imported(program: Program) -> set[str]:
    """Names that stand for something of another project."""
    return {
        name
        for tree in program.files.values()
        for name, what in imported(tree).items()
        if what.partition(".")[0] not in program.modules()
    }


def _shared(program: Program) -> set[str]:
    """Of the ambiguous names those that are read of more than `self` of a class without bases."""
    plain = set()
    for node in program.nodes():
        if isinstance(node, ast.ClassDef) and not node.bases:
            plain |= {
                id(each)
                for each in ast.walk(node)
                if isinstance(each, ast.Attribute)
                and isinstance(each.value, ast.Name)
                and each.value.id == "self"
            }
    return {
        node.attr
        for node in program.nodes()
        if isinstance(node, ast.Attribute) and node.attr in _SHARED and id(node) not in plain
    }


def _of_uncalled(program: Program) -> set[str]:
    """The parameters of functions that nobody reads, by themselves or through their class."""
    read = {node.id for node in program.nodes() if isinstance(node, ast.Name)}
    read |= {node.attr for node in program.nodes() if isinstance(node, ast.Attribute)}
    found = {"self"}
    for node in program.nodes():
        if isinstance(node, Function) and node.name not in read and node.name != "__init__":
            found |= {each.arg for each in parameters(node)}
        if isinstance(node, ast.ClassDef) and node.name not in read:
            found |= {
                each.arg
                for method in own_nodes(node)
                if isinstance(method, Function)
                for each in parameters(method)
            }
    return found


def _unknown_keywords(program: Program) -> set[str]:
    """What is handed by keyword to someone who may not be ours."""
    ours, found = _ours(program), set()
    for node in program.nodes():
        if isinstance(node, ast.Call) and not _is_ours(node, ours):
            found |= {each.arg for each in node.keywords if each.arg}
        if isinstance(node, ast.Call) and any(each.arg is None for each in node.keywords):
            found |= strings(program)
    return found


def _ours(program: Program) -> set[str]:
    kinds = (*Function.__args__, ast.ClassDef)
    return {node.name for node in program.nodes() if isinstance(node, kinds)}


def _is_ours(call: ast.Call, ours: set[str]) -> bool:
    """Whether a call, or what a partial binds, is of the author's own function or class."""
    match call.func:
        case ast.Name(id="partial") | ast.Attribute(attr="partial"):
            return any(isinstance(each, ast.Name) and each.id in ours for each in call.args[:1])
        case ast.Name(id=name):
            return name in ours
        case ast.Attribute(attr=name):
            return name in ours and name not in _TAKEN
    return False
