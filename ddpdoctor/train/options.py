"""The options of a command, from the fields of a pydantic model."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from ddpdoctor.complaints import Complaint

_NAMES = {int: "INTEGER", float: "NUMBER", Path: "PATH", bool: "", str: "TEXT"}


def dashed(name: str) -> str:
    """Return the one spelling that options are compared in: `_` and `-` mean the same."""
    return name.replace("_", "-")


def command_for(model: type[BaseModel], act: Callable[[Any], None]) -> Callable[..., None]:
    """Return a function for typer: its parameters are the fields, and it hands `act` a model.

    Only what was said on the command line is given to the model, as text, so that defaults, types
    and limits are the model's own. Raises Complaint, which names each option that is wrong.
    """

    def command(**said: Any) -> None:
        given = {name: _taken(value) for name, value in said.items() if value not in (None, [])}
        try:
            options = model(**given)
        except ValidationError as error:
            raise Complaint("; ".join(_explained(each) for each in error.errors())) from error
        act(options)

    # What is the command's own, such as its data, before what it has in common with others.
    own = inspect.get_annotations(model)
    fields = sorted(model.model_fields.items(), key=lambda item: item[0] not in own)
    parameters = [_parameter(name, field, _aliases(model, name)) for name, field in fields]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    command.__doc__ = model.__doc__
    return command


def _aliases(model: type[BaseModel], name: str) -> list[str]:
    # Of the base models too: one that gives a field another default need not repeat its names.
    fields = [vars(base).get("__pydantic_fields__", {}).get(name) for base in model.__mro__]
    metadata = [data for field in fields if field for data in field.metadata]
    return list(dict.fromkeys(each for data in metadata for each in getattr(data, "names", ())))


def _parameter(name: str, field: FieldInfo, aliases: list[str]) -> inspect.Parameter:
    kinds = _kinds(field.annotation)
    flags = [f"{'-' if len(each) == 1 else '--'}{dashed(each)}" for each in (name, *aliases)]
    is_list = get_origin(kinds[0]) is list
    if bool in kinds:
        annotation: Any = bool | None
        flags = ["/".join((flag, f"--no-{flag[2:]}")) for flag in flags]
    else:
        annotation = list[str] | None if is_list else str | None
    option = typer.Option(
        *flags,
        help=" ".join((field.description or "").split()) + _default(field),
        metavar=_metavar(kinds),
        show_default=False,
    )
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[annotation, option],
    )


def _kinds(annotation: Any) -> list[Any]:
    """Return the types that a value may have, without None and annotations."""
    if get_origin(annotation) is Annotated:
        return _kinds(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        kinds = [kind for each in get_args(annotation) for kind in _kinds(each)]
        return [kind for kind in kinds if kind is not NoneType]
    return [annotation]


def _metavar(kinds: list[Any]) -> str:
    [kind, *_] = kinds
    if get_origin(kind) is Literal:
        return "|".join(map(str, get_args(kind)))
    if get_origin(kind) is list:
        return _metavar(_kinds(get_args(kind)[0]))
    return _NAMES.get(kind, "TEXT")


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "  [needed]"
    untold = field.default is None or field.default is False or field.default == []
    return "" if untold else f"  [default: {field.default}]"


def _taken(value: Any) -> Any:
    if isinstance(value, list):
        return [part.strip() for each in value for part in each.split(",") if part.strip()]
    return None if value == "none" else value


def _explained(error: Any) -> str:
    message = error["msg"].removeprefix("Value error, ")
    if not error["loc"]:
        return str(message)
    name = f"--{dashed(str(error['loc'][0]))}"
    if error["type"] == "missing":
        return f"{name} is needed"
    return f"{name} {error['input']}: {message[0].lower()}{message[1:]}"
