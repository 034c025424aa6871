"""`ddpdoctor train SYSTEM` and `ddpdoctor predict SYSTEM`."""

from __future__ import annotations

import logging
import os
import signal
import sys
from difflib import get_close_matches
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from ddpdoctor.complaints import Complaint, complaining_about, is_main, need
from ddpdoctor.report import output
from ddpdoctor.train.systems import PREDICT, TRAIN, System

_STOPPED = 128 + signal.SIGTERM


class _Command(TyperCommand):
    """A command whose options are found out when it is used: they are a matter of torch."""

    system: System

    def make_context(self, info_name: Any, args: Any, parent: Any = None, **extra: Any) -> Any:
        from ddpdoctor.train.options import command_for, dashed

        need(self.system.extra, *self.system.modules)
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        settings = {"token_normalize_func": dashed}
        app.command(self.name, context_settings=settings)(command_for(self.system.load(), _act))
        command = typer.main.get_command(app)
        return command.make_context(info_name, args, parent, **extra)


class _Group(TyperGroup):
    systems: dict[str, System]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args:
            raise Complaint(f"say what to {ctx.info_name}: {', '.join(self.systems)}")
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.systems)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        system = self.systems.get(cmd_name)
        if system is None:
            near = get_close_matches(cmd_name, self.systems, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there is {', '.join(self.systems)}"
            raise Complaint(f"there is no system {cmd_name!r} to {ctx.info_name}: {hint}")
        command = _Command(cmd_name, help=system.summary, rich_markup_mode=None)
        command.system = system
        return command


class _TrainGroup(_Group):
    systems = TRAIN


class _PredictGroup(_Group):
    systems = PREDICT


def add_to(app: typer.Typer) -> None:
    """Add both groups to a command line."""
    for name, group, text in (
        ("train", _TrainGroup, "Train with the reference stack, alone or under torchrun."),
        ("predict", _PredictGroup, "Predict by a checkpoint of the reference stack."),
    ):
        # A group without commands of its own is left out by typer; a callback makes it one.
        one = typer.Typer(cls=group, help=text, rich_markup_mode=None, no_args_is_help=False)
        one.callback()(_nothing)
        app.add_typer(one, name=name)


def _nothing() -> None:
    pass


def _act(job: Any) -> None:
    from ddpdoctor.stack.errors import RankFailedError, StackError, StoppedError
    from ddpdoctor.stack.process_group import lost_a_peer

    logging.basicConfig(format="%(message)s")
    logging.getLogger("ddpdoctor.stack").setLevel(logging.INFO)
    with complaining_about(StackError, RankFailedError):
        try:
            text = job.run()
        except StoppedError as stopped:
            raise Complaint(str(stopped), code=_STOPPED) from stopped
        except RuntimeError as error:
            if not lost_a_peer(error):
                raise
            raise Complaint(
                f"rank {os.environ.get('RANK', '0')}: another rank has ended, and "
                f"says itself why, or it did not come in time; {error}",
                code=1,
                of_this_rank=True,
            ) from error
    if is_main():
        output.write(sys.stdout, text)
