"""The command line: one function per command, which parses, calls and prints. No logic.

What is slow to import (torch, rich) is imported by the command that needs it.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from ddpdoctor import __version__, catalog
from ddpdoctor.attach.cli import attach
from ddpdoctor.complaints import (
    Complaint,
    complaining_about,
    guarded,
    is_main,
    leaving_in_order,
    need,
)
from ddpdoctor.lint.cli import lint
from ddpdoctor.options import Colour, ColourOption, OutputOption
from ddpdoctor.postmortem.cli import diagnose
from ddpdoctor.report import output
from ddpdoctor.run.cli import run as run_job

if TYPE_CHECKING:
    from ddpdoctor.report.model import CheckReport

app = typer.Typer(
    help="Find out why PyTorch DistributedDataParallel training hangs, crashes or goes wrong.",
    add_completion=False,
    rich_markup_mode=None,
)
train = typer.Typer(
    help="Train with the reference stack.",
    rich_markup_mode=None,
)
app.add_typer(train, name="train")
app.command()(lint)
app.command()(diagnose)
app.command()(attach)
app.command(
    "run", context_settings={"allow_interspersed_args": False, "ignore_unknown_options": True}
)(run_job)


class Backend(StrEnum):
    """The library that the ranks communicate with."""

    auto = "auto"
    gloo = "gloo"
    nccl = "nccl"


class Suite(StrEnum):
    """How much of what was selected `check` performs."""

    all = "all"
    quick = "quick"


class CheckFormat(StrEnum):
    """The formats of `check`."""

    text = "text"
    json = "json"
    junit = "junit"
    markdown = "markdown"


class PageFormat(StrEnum):
    """The formats of `explain`."""

    text = "text"
    json = "json"


class EnvFormat(StrEnum):
    """The formats of `env`."""

    text = "text"
    json = "json"
    markdown = "markdown"


CodesOption = Annotated[
    list[str] | None,
    typer.Option(metavar="CODE", help="A code, prefix (DDP2) or title; repeat, or use commas."),
]


def _show_version(asked: bool) -> None:
    if asked:
        output.write(sys.stdout, f"ddpdoctor {__version__}\n")
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_show_version, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    pass


@app.command()
def check(
    nproc: Annotated[int, typer.Option(min=1, help="How many ranks to start.")] = 4,
    backend: Annotated[Backend, typer.Option(help="How the ranks communicate.")] = Backend.auto,
    select: CodesOption = None,
    ignore: CodesOption = None,
    suite: Annotated[
        Suite, typer.Option(help="quick leaves out what needs torchrun or another launcher.")
    ] = Suite.all,
    format_: Annotated[CheckFormat, typer.Option("--format")] = CheckFormat.text,
    target: OutputOption = None,
    list_: Annotated[bool, typer.Option("--list", help="List the pitfalls and exit.")] = False,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, help="At most so many launches at a time.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 3 if anything could not be checked.")
    ] = False,
    colour: ColourOption = Colour.auto,
    run_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep what the ranks wrote in this folder.")
    ] = None,
) -> None:
    """Perform the known failures here.

    Says whether each reproduces and is recognised, and which remedies and advice hold.

    Exit code: 0 healthy; 1 a remedy that fails, or a failure that is not recognised; 2 a usage
    error or a fault of ours; 3 something that was asked for could not be checked. Advice in
    circulation that does not hold is news, not a failure.
    """
    from ddpdoctor.report import pages

    pitfalls = _chosen(select, ignore)
    if list_:
        output.write(sys.stdout, pages.listing(pitfalls))
        return
    need("torch", "torch")
    if target:
        output.check_writable(target)
    if run_dir:
        output.make_folder(run_dir)

    from ddpdoctor.check import CheckOptions
    from ddpdoctor.check import check as perform
    from ddpdoctor.launch import LaunchError
    from ddpdoctor.report.progress import LiveProgress

    options = CheckOptions(
        nproc=nproc, backend=backend.value, suite=suite.value, jobs=jobs, run_dir=run_dir
    )
    variants = sum(len(pitfall.variants) for pitfall in pitfalls)
    progress = LiveProgress(variants, colour=output.wants_colour(colour.value, sys.stderr))
    with complaining_about(LaunchError), leaving_in_order(), progress:
        report = perform(pitfalls, options, progress.on_verdict, progress.on_start)
    _emit(_rendered(report, format_, colour, target), target)
    raise typer.Exit(report.exit_code(asked_by_name=bool(select), strict=strict))


@app.command()
def explain(
    code: Annotated[
        list[str] | None, typer.Argument(metavar="CODE", help="A code, prefix (DDP2) or title.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every page.")] = False,
    format_: Annotated[PageFormat, typer.Option("--format")] = PageFormat.text,
    target: OutputOption = None,
    colour: ColourOption = Colour.auto,
) -> None:
    """Print what is known of a code, whichever command gave it.

    What happens, why, what holds, what does not, and how that is proven.
    """
    from ddpdoctor.report import pages

    if bool(code) == everything:
        raise Complaint("name a code, or say --all")
    entries = catalog.select(catalog.entries(), _split(code))
    if format_ is PageFormat.json:
        _emit(pages.as_json(entries), target)
    elif target is None and (sys.stdout.isatty() or colour is Colour.always):
        _emit(pages.for_terminal(entries, _page(colour, target)), target)
    else:
        _emit(pages.as_text(entries), target)


@app.command()
def env(
    format_: Annotated[EnvFormat, typer.Option("--format")] = EnvFormat.text,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    target: OutputOption = None,
    colour: ColourOption = Colour.auto,
) -> None:
    """Describe this machine, and what is wrong with it.

    Secrets in the environment are left out. Exit code: 0 healthy or harmless; 1 something will go
    wrong because of it.
    """
    if target:
        output.check_writable(target)

    from ddpdoctor.environment import examine
    from ddpdoctor.report import environment

    report = examine()
    if as_json or format_ is EnvFormat.json:
        _emit(report.model_dump_json(indent=2) + "\n", target)
    elif format_ is EnvFormat.markdown:
        _emit(environment.as_markdown(report), target)
    else:
        _emit(environment.as_text(report, _page(colour, target)), target)
    raise typer.Exit(any(finding.severity != "info" for finding in report.findings))


@train.command()
def crystal(
    extxyz: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Extended XYZ; default: bulk moduli of ase's dcdft."),
    ] = None,
    target: Annotated[
        str | None, typer.Option(metavar="PROPERTY", help="The property in FILE to learn.")
    ] = None,
    log10: Annotated[bool, typer.Option("--log10", help="Learn the log10 of PROPERTY.")] = False,
    epochs: int = 50,
    batch_size: Annotated[int, typer.Option(help="Per rank.")] = 64,
    learning_rate: Annotated[float, typer.Option("--learning-rate", "--lr")] = 2e-3,
    accumulation_steps: Annotated[int, typer.Option(help="Batches per optimizer step.")] = 1,
    amp: Annotated[bool, typer.Option("--amp", help="Mixed precision.")] = False,
    ema_decay: Annotated[float, typer.Option(help="Of the weights that are evaluated.")] = 0.99,
    seed: int = 42,
    num_workers: Annotated[int, typer.Option(help="Processes per rank that load data.")] = 0,
    use_lattice: Annotated[bool, typer.Option("--use-lattice")] = False,
    use_angle: Annotated[bool, typer.Option("--use-angle")] = False,
    cache_graphs: Annotated[bool, typer.Option("--cache-graphs")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the last checkpoint in the folder.")
    ] = False,
    keep_checkpoints: Annotated[int, typer.Option(help="How many, beside the best.")] = 2,
    output_dir: Annotated[
        Path, typer.Option(metavar="DIR", help="For checkpoints, results.json and plots.")
    ] = Path("output"),
    backend: Annotated[Backend, typer.Option(help="How the ranks communicate.")] = Backend.auto,
) -> None:
    """Train a graph transformer on a property of crystals.

    Alone, or on four ranks: torchrun --nproc-per-node=4 -m ddpdoctor train crystal
    """
    if (extxyz is None) != (target is None):
        raise Complaint("--extxyz FILE and --target PROPERTY belong together")
    need("crystal", "torch", "ase", "pymatgen", "vesin", "matplotlib")
    logging.basicConfig(level=logging.INFO, format="%(message)s")

    from ddpdoctor.stack.crystal import dcdft, train_from_extxyz, train_from_list
    from ddpdoctor.stack.errors import RankFailedError, StackError

    options: dict[str, Any] = {
        "log10": log10,
        "n_epochs": epochs,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "accumulation_steps": accumulation_steps,
        "use_amp": amp,
        "ema_decay": ema_decay,
        "random_seed": seed,
        "num_workers": num_workers,
        "use_lattice": use_lattice,
        "use_angle": use_angle,
        "cache_graphs": cache_graphs,
        "resume": resume,
        "keep_checkpoints": keep_checkpoints,
        "output_dir": output_dir,
        "backend": backend.value,
    }
    with complaining_about(StackError, RankFailedError):
        if extxyz and target:
            result = train_from_extxyz(extxyz, target, **options)
        else:
            result = train_from_list(*dcdft(), **options)
    if is_main():
        output.write(
            sys.stdout,
            f"test error {result.test_mae:.4f}, {result.ratio:.2f} of the mean predictor's; "
            f"{result.n_train} + {result.n_validation} + {result.n_test} structures on "
            f"{result.world_size} rank(s), best epoch {result.best_epoch + 1}, "
            f"{result.seconds:.1f} s; {output_dir}/results.json\n",
        )


def main() -> NoReturn:
    """Run the command line and exit, without a traceback whatever happens."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    command = typer.main.get_command(app)

    def perform() -> None:
        # Not command(...): its own handlers print a usage block, and turn Ctrl-C into silence.
        with command.make_context("ddpdoctor", list(arguments) or ["--help"]) as context:
            command.invoke(context)

    # Under torchrun every rank finds the same mistake, and rank 0 tells it.
    return guarded(perform, silent=arguments[:1] == ["train"] and not is_main())


def _chosen(wanted: Sequence[str] | None, ignored: Sequence[str] | None) -> list[catalog.Pitfall]:
    pitfalls = catalog.select(catalog.load(), _split(wanted), _split(ignored))
    if not pitfalls:
        raise Complaint("nothing is left: --ignore takes away everything that was selected")
    return pitfalls


def _split(codes: Sequence[str] | None) -> list[str]:
    return [code.strip() for entry in codes or () for code in entry.split(",") if code.strip()]


def _emit(text: str, target: Path | None) -> None:
    if target:
        output.write_file(target, text)
    else:
        output.write(sys.stdout, text)


def _rendered(
    report: CheckReport, format_: CheckFormat, colour: Colour, target: Path | None
) -> str:
    from ddpdoctor.report import as_json, as_junit, as_markdown, as_text

    if format_ is CheckFormat.json:
        return as_json.render(report)
    if format_ is CheckFormat.junit:
        return as_junit.render(report)
    if format_ is CheckFormat.markdown:
        return as_markdown.render(report)
    return as_text.render(report, _page(colour, target))


def _page(colour: Colour, target: Path | None) -> output.Page:
    if target:
        return output.Page(colour=colour is Colour.always)
    return output.Page.of(sys.stdout, colour.value)
