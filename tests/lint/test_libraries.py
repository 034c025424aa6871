"""The tables of what libraries do, against the libraries that are installed."""

from __future__ import annotations

import importlib
import inspect
import types
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
    if isinstance(thing, types.MethodDescriptorType):
        return  # built in C: Python 3.13 makes up the names
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
        bases = [each for each in kind.__mro__ if each.__module__.startswith("torch.nn.modules")]
        bases.remove(nn.Module)
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


@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
def test_the_sizes_of_what_takes_any_arguments_are_where_it_takes_them(kind: type) -> None:
    effect = next(each for each in EFFECTS if each.name == f"torch.nn.{kind.__name__}")
    nonlinearity = ["tanh"] if kind is nn.RNN else []
    given = [5, 6, 2, *nonlinearity, False, True, 0.25, True]
    given += [3] if kind is nn.LSTM else []
    made = kind(*given)
    kept = {name: given[position] for _, name, position in effect.parameters()}
    assert {name: getattr(made, name) for name in kept} == kept
    assert len({*kept.values()}) > 3


@pytest.mark.parametrize(
    ("name", "given", "other"),
    [
        ("Linear", (3, 4, True), (4, 5, False)),
        ("Conv2d", (4, 6, 3, 1, 0, 1, 1, True, "zeros"), (8, 8, 5, 2, 2, 2, 2, False, "reflect")),
        ("ConvTranspose1d", (4, 6, 3, 2, 0, 0, 1, True, 1), (8, 8, 5, 3, 2, 1, 2, False, 2)),
        ("Embedding", (9, 4, None, None, 2.0), (8, 5, 1, 1.0, 3.0)),
        ("GroupNorm", (2, 4, 1e-5, True), (4, 8, 1e-3, False)),
        ("LayerNorm", (4, 1e-5, True, True), (5, 1e-3, False, False)),
        ("BatchNorm1d", (4, 1e-5, 0.1, True, True), (5, 1e-3, 0.2, False, False)),
        ("PReLU", (1, 0.25), (3, 0.5)),
        ("GRUCell", (3, 4, True), (4, 5, False)),
        ("TransformerEncoderLayer", (4, 2, 8, 0.1, "relu"), (8, 4, 9, 0.2, "gelu")),
        ("MultiheadAttention", (4, 2, 0.1, True, False), (8, 4, 0.2, False, True)),
    ],
)
def test_the_sizes_of_a_layer_are_the_arguments_that_change_its_parameters(
    name: str, given: tuple[Any, ...], other: tuple[Any, ...]
) -> None:
    def shapes(arguments: tuple[Any, ...]) -> dict[str, tuple[int, ...]]:
        made = getattr(nn, name)(*arguments)
        return {word: tuple(each.shape) for word, each in made.state_dict().items()}

    effect = next(each for each in EFFECTS if each.name == f"torch.nn.{name}")
    sizes = {position for _, _, position in effect.parameters()}
    changing = {
        at
        for at, each in enumerate(other)
        if shapes((*given[:at], each, *given[at + 1 :])) != shapes(given)
    }
    assert changing == sizes & {*range(len(given))}
