"""The command line: one function per command, which parses, calls and prints. No logic.

What is slow to import (torch, rich) is imported by the command that needs it, and of the commands
that have rooms of their own the one alone that is asked for: lint is called at every save.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Collection, Sequence
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from ddpdoctor import __version__
from ddpdoctor.complaints import (
    INTERRUPTED,
    Complaint,
    complaining_about,
    guarded,
    is_main,
    leaving_in_order,
    need,
)
from ddpdoctor.options import (
    Asked,
    Backend,
    BackendOption,
    Colour,
    ColourOption,
    IgnoreOption,
    OutputOption,
    SelectOption,
    reporting,
    split,
)
from ddpdoctor.report import output
from ddpdoctor.sparing import SparingCommand, SparingGroup

if TYPE_CHECKING:
    from ddpdoctor.catalog import Pitfall

_ROOMS = {
    "run": "run",
    "diagnose": "postmortem",
    "attach": "attach",
    "lint": "lint",
    "env": "environment",
    "probe": "probe",
    "config": "configure",
    "train": "train",
}
"""The commands that have rooms of their own, in the order of the help, and these rooms."""


_NAME = "ddpdoctor"
_COMPLETE = "_DDPDOCTOR_COMPLETE"
"""The variable by which a shell asks, as typer and click name it."""


class Suite(StrEnum):
    """How much of what was selected `check` performs."""

    all = "all"
    quick = "quick"


class Shell(StrEnum):
    """The shells that can complete commands."""

    bash = "bash"
    zsh = "zsh"
    fish = "fish"


class PageFormat(StrEnum):
    """The formats of `explain`."""

    text = "text"
    json = "json"


def application(wanted: Collection[str] = _ROOMS) -> typer.Typer:
    """The command line with these commands of other rooms, and those of this file."""
    app = typer.Typer(
        cls=SparingGroup,
        help="Find out why PyTorch DistributedDataParallel training hangs, crashes or goes wrong.",
        add_completion=False,
        rich_markup_mode=None,
    )
    for name in _ROOMS:
        if name in wanted:
            _add(app, name)
    app.callback()(_top)
    for command in _OWN.values():
        app.command(cls=SparingCommand)(command)
    return app


def _add(app: typer.Typer, name: str) -> None:
    room = import_module(f"ddpdoctor.{_ROOMS[name]}.cli")
    if name == "train":
        room.add_to(app)
        return
    # What follows the command of the job is the job's.
    settings = {"allow_interspersed_args": False, "ignore_unknown_options": True}
    command = app.command(
        name, cls=SparingCommand, context_settings=settings if name == "run" else None
    )
    command(getattr(room, name))


def _show_version(asked: bool) -> None:
    if asked:
        output.write(sys.stdout, f"ddpdoctor {__version__}\n")
        raise typer.Exit


def _top(
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_show_version, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    pass


@reporting()
def check(
    nproc: Annotated[int, typer.Option(min=1, metavar="N", help="How many ranks to start.")] = 4,
    backend: BackendOption = Backend.auto,
    select: SelectOption = None,
    ignore: IgnoreOption = None,
    suite: Annotated[
        Suite, typer.Option(help="quick leaves out advice, and what needs torchrun or its like.")
    ] = Suite.all,
    list_: Annotated[bool, typer.Option("--list", help="List the pitfalls and exit.")] = False,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", "-j", min=1, metavar="N", help="At most so many launches at a time."
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Start ranks even if they do not seem to fit here.")
    ] = False,
    run_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep what the ranks wrote in this folder.")
    ] = None,
    *,
    asked: Asked,
) -> None:
    """Perform the known failures here.

    Says whether each reproduces and is recognised, and which remedies and advice hold.

    Exit code: 0 healthy; 1 a remedy that fails, or a failure that is not recognised: errors, both
    (--fail-on); 2 a usage error or a fault of ours; 3 something that was asked for could not be
    checked. Advice in circulation that does not hold is news, not a failure.
    """
    from ddpdoctor.report import pages

    pitfalls = _chosen(select, ignore)
    if list_:
        output.write(sys.stdout, pages.listing(pitfalls))
        return
    need("torch", "torch")
    if run_dir:
        output.make_folder(run_dir)

    from ddpdoctor.check import CheckOptions
    from ddpdoctor.check import check as perform
    from ddpdoctor.check.telling import problem_lines, told
    from ddpdoctor.launch import LaunchError
    from ddpdoctor.report.progress import LiveProgress

    options = CheckOptions(
        nproc=nproc,
        backend=backend.value,
        suite=suite.value,
        jobs=jobs,
        run_dir=run_dir,
        force=force,
    )
    variants = sum(len(pitfall.variants) for pitfall in pitfalls)
    progress = LiveProgress(variants, colour=output.wants_colour(asked.colour.value, sys.stderr))
    with complaining_about(LaunchError), leaving_in_order(), progress:
        report = perform(pitfalls, options, progress.on_verdict, progress.on_start)
    asked.deliver(told(report))
    if asked.target:
        output.write(sys.stderr, "".join(f"ddpdoctor: {line}\n" for line in problem_lines(report)))
    raise typer.Exit(report.exit_code(asked.threshold, asked_by_name=bool(select)))


def explain(
    code: Annotated[
        list[str] | None, typer.Argument(metavar="CODE", help="A code, prefix (DDP2) or title.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every page.")] = False,
    format_: Annotated[
        PageFormat, typer.Option("--format", help="How to tell it.")
    ] = PageFormat.text,
    target: OutputOption = None,
    colour: ColourOption = Colour.auto,
) -> None:
    """Print what is known of a code, whichever command gave it.

    What happens, why, what holds, what does not, and how that is proven.
    """
    from ddpdoctor import catalog
    from ddpdoctor.report import pages

    wanted = split(code)
    if bool(wanted) == everything:
        raise Complaint("name a code, or say --all")
    with complaining_about(catalog.UnknownCode):
        entries = catalog.find(wanted)
    if format_ is PageFormat.json:
        text = pages.as_json(entries)
    elif target is None and (sys.stdout.isatty() or colour is Colour.always):
        text = pages.for_terminal(entries, output.Page.of(sys.stdout, colour.value))
    else:
        text = pages.as_text(entries)
    output.put(text, target)


def lsp() -> None:
    """Speak with an editor, by the Language Server Protocol.

    On standard input and output. It shows what lint finds as you type, its fixes, and the page of
    a code on hover.
    """
    need("lsp", "pygls")
    from ddpdoctor.language_server import serve

    serve()


def completion(
    shell: Annotated[Shell, typer.Argument(help="Whose script to print.")],
) -> None:
    """Print what a shell must read to complete commands and options.

    For bash: eval "$(ddpdoctor completion bash)", in ~/.bashrc.
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    script = get_completion_script(prog_name=_NAME, complete_var=_COMPLETE, shell=shell.value)
    output.write(sys.stdout, f"{script}\n")


def manual() -> None:
    """Print the manual page.

    To install it: ddpdoctor manual > ~/.local/share/man/man1/ddpdoctor.1
    """
    from ddpdoctor.manual import as_roff

    output.write(sys.stdout, as_roff())


_OWN = {each.__name__: each for each in (check, explain, lsp, completion, manual)}
"""The commands of this file."""


def main() -> NoReturn:
    """Run the command line and exit, without a traceback whatever happens."""
    output.open_closed_streams()
    if _COMPLETE in os.environ:  # a shell asks what could follow
        from typer.completion import completion_init  # type: ignore[attr-defined]

        completion_init()
        typer.main.get_command(application())(prog_name=_NAME, complete_var=_COMPLETE)
    try:
        code = run(sys.argv[1:])
    except KeyboardInterrupt:  # another one, while the first was told of
        code = INTERRUPTED
    # What libraries do at the very end is brief, and a Ctrl-C in it would end in a traceback.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    asked = arguments[0] if arguments else ""
    wanted = [asked] if asked in _ROOMS | _OWN else _ROOMS
    command = typer.main.get_command(application(wanted))

    def perform() -> None:
        # Not command(...): its own handlers print a usage block, and turn Ctrl-C into silence.
        with command.make_context("ddpdoctor", list(arguments) or ["--help"]) as context:
            command.invoke(context)

    # Under torchrun every rank finds the same mistake, and rank 0 tells it.
    return guarded(perform, silent=arguments[:1] in (["train"], ["predict"]) and not is_main())


def _chosen(wanted: Sequence[str] | None, ignored: Sequence[str] | None) -> list[Pitfall]:
    from ddpdoctor import catalog

    with complaining_about(catalog.UnknownCode):
        pitfalls = catalog.select(catalog.load(), split(wanted), split(ignored))
    if not pitfalls:
        raise Complaint("nothing is left: --ignore takes away everything that was selected")
    return pitfalls
