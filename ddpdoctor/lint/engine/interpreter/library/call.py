"""A call of what a library gives, and what plays which role in it."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from ddpdoctor.lint.engine.interpreter.machine import Machine
from ddpdoctor.lint.engine.interpreter.values import (
    NONE,
    NOTHING,
    Const,
    Lib,
    Many,
    Ref,
    Term,
    Value,
    term,
)
from ddpdoctor.lint.engine.libraries import Effect


@dataclass(frozen=True)
class Call:
    """A call by its dotted name, and what the tables say of it."""

    name: str
    effect: Effect
    owner: Value | None
    """The object of a method."""
    args: list[Value]
    kwargs: dict[str, Value]
    node: ast.AST

    @property
    def last(self) -> str:
        """Its name without where it comes from."""
        return self.name.rpartition(".")[2]

    @property
    def first(self) -> Value:
        """The first argument by position; NONE where there is none."""
        return self.args[0] if self.args else NONE

    @property
    def with_owner(self) -> list[Value]:
        """The arguments by position, after the object of a method."""
        return [*([] if self.owner is None else [self.owner]), *self.args]

    def given(self, role: str) -> Value | None:
        """The argument that plays a role, None where it is not given."""
        for each, parameter, position in self.effect.parameters():
            if each == role:
                if parameter in self.kwargs:
                    return self.kwargs[parameter]
                before = self.args[: position + 1]
                if 0 <= position < len(before) and not any(map(is_starred, before)):
                    return self.args[position]
        return None

    def roles(self) -> dict[str, Value]:
        """All arguments that play a role."""
        played = {role: self.given(role) for role, _, _ in self.effect.parameters()}
        return {role: value for role, value in played.items() if value is not None}


Handler = Callable[[Machine, Call], Value]


def starred(value: Value, content: Value | None) -> Term:
    """`*rest` of nobody knows how many, by the element that stands for all."""
    if content is not None and isinstance(content.what, Many):
        return term("*", content.what.element.what)
    what = value.what
    return term("*", term("element", what) if isinstance(what, Term) else NOTHING)


def is_starred(value: Value) -> bool:
    """Whether an argument stands for nobody knows how many."""
    return isinstance(value.what, Term) and value.what.op == "*"


def identity(vm: Machine, name: str, args: list[Value], node: ast.AST) -> Term:
    """What a call gives, by what it was given."""
    parts = [each.what for each in args if isinstance(each.what, Const | Term | Ref | Lib)]
    return term("lib", name, *parts, vm.site(node) if len(parts) != len(args) else 0)
