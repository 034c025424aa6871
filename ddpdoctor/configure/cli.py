"""The command `config`."""

from __future__ import annotations

import re
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TextIO

import typer

from ddpdoctor.complaints import Complaint, complaining_about, leaving_in_order
from ddpdoctor.report import output

if TYPE_CHECKING:
    from ddpdoctor.configure.files.launch_file import LaunchFile
    from ddpdoctor.configure.plan import Plan

_HOST = re.compile(r"[\w.:%-]+|\[[\w.:%-]+\]", re.ASCII)
"""What a name or an address can be, and no shell reads otherwise."""
_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?", re.ASCII)
"""A label as DNS has it, which is what Kubernetes takes and every other launcher takes too."""
_LONGEST_NAME = 40
"""Of the 63 letters of a label, what the operator leaves that adds "-worker-" and a number."""
_STDOUT = Path("-")


class Launcher(StrEnum):
    """Whose launch file to write."""

    accelerate = "accelerate"
    torchrun = "torchrun"
    slurm = "slurm"
    kubernetes = "kubernetes"
    mpirun = "mpirun"


class DeviceChoice(StrEnum):
    """What each rank computes on."""

    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"


DEVICES: dict[DeviceChoice, Literal["cpu", "cuda"] | None] = {
    DeviceChoice.auto: None,
    DeviceChoice.cpu: "cpu",
    DeviceChoice.cuda: "cuda",
}


def config(
    launcher: Annotated[Launcher, typer.Argument(help="Whose launch file to write.")],
    nproc: Annotated[
        str, typer.Option(metavar="N|auto", help="Ranks per node; auto: what is here.")
    ] = "auto",
    nodes: Annotated[int, typer.Option(min=1, metavar="N", help="How many machines.")] = 1,
    device: Annotated[
        DeviceChoice, typer.Option(help="What each rank computes on.")
    ] = DeviceChoice.auto,
    cpus: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="CPUs per node; default: those usable here."),
    ] = None,
    master: Annotated[
        str | None, typer.Option(metavar="HOST", help="The first of several machines.")
    ] = None,
    image: Annotated[
        str | None, typer.Option(metavar="NAME", help="Container image, for kubernetes.")
    ] = None,
    script: Annotated[str, typer.Option(metavar="FILE", help="What the ranks run.")] = "train.py",
    name: Annotated[str, typer.Option(metavar="NAME", help="Name of the job.")] = "train",
    target: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to write; '-' for stdout."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file that is there.")] = False,
    try_: Annotated[
        bool, typer.Option("--try/--no-try", help="Start it once with a script of ours.")
    ] = True,
) -> None:
    """Write a launch file that works here, and try it once.

    Each of its lines has its reason beside it.

    Exit code: 0 written, and it works as far as it could be tried; 1 written, and the trial failed;
    2 nothing was written.
    """
    from ddpdoctor.configure.files import LAUNCHERS
    from ddpdoctor.configure.plan import Impossible, Wish, plan
    from ddpdoctor.configure.trial import attempt
    from ddpdoctor.environment.facts import collect

    lines = {"script": script, "master": master, "image": image, "output": target}
    for option, text in ((o, str(t)) for o, t in lines.items() if t is not None):
        if not (text.strip() and text.isprintable()):
            raise Complaint(f"--{option} is one line with a name in it: not {text!r}")
        if text.startswith("-") and text != str(_STDOUT):
            raise Complaint(f"--{option} would be read as an option: write ./{text}")
    file = LAUNCHERS[launcher.value]
    path = target or Path(file.file_name)
    _check_place(path, force)
    wish = Wish(
        nproc=_count(nproc),
        nodes=nodes,
        device=DEVICES[device],
        cpus=cpus,
        master=_host(master),
        image=image,
        script=script,
        python=sys.executable,
        name=_job_name(name),
    )
    with complaining_about(Impossible):
        chosen = plan(wish, collect())
        text = file.render(chosen, file.file_name if path == _STDOUT else str(path))
    told = _written(path, text, file, chosen)
    if not try_:
        return
    with leaving_in_order():
        outcome = attempt(file, chosen, text)
    mark = {"works": "✓", "fails": "✗", "not tried": "○"}[outcome.state]
    words = {"works": "tried", "fails": "tried, and it failed", "not tried": "not tried"}
    output.write(told, f"{mark} {words[outcome.state]}: {outcome.words}\n")
    raise typer.Exit(outcome.state == "fails")


def _check_place(path: Path, force: bool) -> None:
    if path == _STDOUT:
        return
    output.check_writable(path)
    if path.exists() and not force:
        raise Complaint(f"{path} is there already: --force overwrites it, -o FILE names another")


def _written(path: Path, text: str, file: LaunchFile, chosen: Plan) -> TextIO:
    """Write the file, and return where to tell what became of it."""
    if path == _STDOUT:
        output.write(sys.stdout, text)
        return sys.stderr
    output.write_file(path, text)
    if file.executable:
        path.chmod(0o755)
    ranks = _ranks(chosen.nproc, chosen.nodes)
    output.write(sys.stdout, f"wrote {path}: {ranks} on {chosen.device}\n")
    return sys.stdout


def _host(master: str | None) -> str | None:
    """A name or address, an IPv6 one without the brackets that it has in front of a port."""
    if master is None:
        return None
    if not _HOST.fullmatch(master):
        raise Complaint(f"--master is the name or address of a machine: not {master!r}")
    return master.strip("[]")


def _count(nproc: str) -> int | None:
    if nproc == "auto":
        return None
    if not nproc.isdecimal() or int(nproc) < 1:
        raise Complaint(f"--nproc is a number from 1 on, or auto: not {nproc}")
    return int(nproc)


def _job_name(name: str) -> str:
    if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        raise Complaint(
            f"--name takes up to {_LONGEST_NAME} small letters, digits and '-', a letter first and "
            f"no '-' last: not {name!r}"
        )
    return name


def _ranks(nproc: int, nodes: int) -> str:
    ranks = f"{nproc} rank{'s' if nproc > 1 else ''}"
    return ranks if nodes == 1 else f"{ranks} on each of {nodes} nodes"
