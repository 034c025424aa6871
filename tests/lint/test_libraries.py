"""The tables of what libraries do, against the libraries that are installed."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import pytest
from torch import nn

from ddpdoctor.lint.engine.libraries import Effect, UnknownEffect, _lines, parse

EFFECTS = [parse(line) for _, line in _lines()]
CHECKED = ("torch.", "accelerate.", "os.", "shutil.", "sys.", "copy.", "time.")
# Names of other versions than the one that is installed, and attributes of instances.
ELSEWHERE = ("torch.distributed.distributed_c10d.is_torchelastic_launched",)

# Whose parameters are those of others, or affine and off unless asked for.
NO_LAYERS = (
    "DataParallel",
    "ParameterDict",
    "ParameterList",
    *(f"{lazy}InstanceNorm{size}d" for lazy in ("", "Lazy") for size in (1, 2, 3)),
)


def installed(name: str) -> Any:
    """The object by its dotted name. Raises AttributeError."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:length]))
        except ImportError:
            continue
        for part in parts[length:]:
            found = getattr(found, part)
        return found
    raise AttributeError(name)


def test_every_line_can_be_read() -> None:
    assert len(EFFECTS) > 300
    with pytest.raises(UnknownEffect, match="after the name comes one of"):
        parse("mine.sync  collectve")
    with pytest.raises(UnknownEffect, match="role=parameter@position"):
        parse("mine.sync  collective group")


@pytest.mark.parametrize(
    "effect",
    [
        each
        for each in EFFECTS
        if each.name.startswith(CHECKED) and not each.name.endswith("*")
        if each.name not in ELSEWHERE and any(True for _ in each.parameters())
    ],
    ids=lambda effect: effect.name,
)
def test_names_and_parameters_are_those_of_the_installed_version(effect: Effect) -> None:
    thing = installed(effect.name)
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return  # built in C: it has no signature to compare with
    names = [name for name in signature.parameters if name != "self"]
    for _, parameter, position in effect.parameters():
        if "kwargs" in names or "args" in names:
            continue
        assert parameter in names
        if position >= 0:
            assert names.index(parameter) == position


def test_every_layer_of_torch_that_has_parameters_is_known_as_one() -> None:
    def registers(kind: type) -> bool:
        bases = [each for each in kind.__mro__ if each not in (nn.Module, object)]
        return any("Parameter(" in inspect.getsource(each) for each in bases)

    made = [
        each
        for name in dir(nn)
        if isinstance(each := getattr(nn, name), type)
        and issubclass(each, nn.Module)
        and registers(each)
    ]
    listed = {each.name for each in EFFECTS if each.option("has")}
    known = {f"torch.nn.{each.__name__}" for each in made if each.__name__ not in NO_LAYERS}
    assert known
    assert known <= listed, known - listed
