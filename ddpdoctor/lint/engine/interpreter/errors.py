"""Which handler catches an error."""

from __future__ import annotations

import builtins

from ddpdoctor.lint.engine.interpreter.machine import Machine
from ddpdoctor.lint.engine.interpreter.objects import hierarchy
from ddpdoctor.lint.engine.interpreter.values import Class, Lib, Ref, Term, Tuple, Value, What


def catches(vm: Machine, caught: What, error: What) -> bool:
    """Whether what stands behind `except`, one class or several, catches an error."""
    several = [each.what for each in caught.items] if isinstance(caught, Tuple) else [caught]
    kinds = _kinds(vm, error)
    return any(_itself(each) in kinds for each in several)


def is_known(caught: Value) -> bool:
    """Whether it is known which classes stand behind `except`."""
    several = caught.what.items if isinstance(caught.what, Tuple) else (caught,)
    return all(isinstance(each.what, Class | Lib) for each in several)


def _kinds(vm: Machine, error: What) -> set[What]:
    """The class of an error, and all that it derives from."""
    if isinstance(error, Term) and error.op == "result":
        error = error.args[0]
    if isinstance(error, Ref):
        cls = vm.objects[error.number].cls
        error = Class(cls) if cls >= 0 else error
    if not isinstance(error, Class):
        return {Lib(each.__name__) for each in _of_python(error).__mro__} | {_itself(error)}
    own = [*hierarchy.bases(vm, error.number)]
    given = [base.what for each in own for base in vm.classes[each].bases]
    return {Class(each) for each in own}.union(
        *(_kinds(vm, each) for each in given if not isinstance(each, Class))
    )


def _of_python(error: What) -> type:
    """The class of Python's own that this is; of another library's that it is some Exception."""
    found = getattr(builtins, error.name, None) if isinstance(error, Lib) else None
    return found if isinstance(found, type) else Exception


def _itself(error: What) -> What:
    """A class by its own name: `IOError` is OSError."""
    found = _of_python(error)
    is_known = isinstance(error, Lib) and hasattr(builtins, error.name)
    return Lib(found.__name__) if is_known else error
