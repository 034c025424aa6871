"""What programs may call: the findings of `lint` and `diagnose`, in the shape of all commands.

    >>> from ddpdoctor import api
    >>> (finding,) = api.lint(text='''
    ... import torch.distributed as dist
    ... dist.init_process_group("gloo")
    ... if dist.get_rank() == 0:
    ...     dist.barrier()
    ... ''')
    >>> finding.code, finding.title, finding.certainty
    ('DDP401', 'rank-conditional-collective', 'certain')
    >>> finding.place.line
    5

Nothing here prints, ends the process or imports torch. What can be called from a training script is
`ddpdoctor.watch.start()`.
"""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ddpdoctor.catalog import Finding

__all__ = ["diagnose", "lint"]


def lint(*paths: str | PathLike[str], text: str | None = None) -> list[Finding]:
    """The DDP bugs that can be read off files and folders, or off `text`.

        >>> lint(text="import torch")
        []

    pyproject.toml and `# noqa` are heeded, as by the command. Raises ValueError where there is
    nothing to read.
    """
    from ddpdoctor.lint.command import LintOptions, examine

    if text is None and not paths:
        raise ValueError("name a path, or give a text")
    names = tuple(map(str, paths)) + (("-",) if text is not None else ())
    report = examine(LintOptions(paths=names), text.encode() if text is not None else None)
    return [each.finding() for each in report.diagnostics]


def diagnose(*paths: str | PathLike[str]) -> list[Finding]:
    """What went wrong in a job that is over, or that hangs: by its run folder, dumps or log.

        >>> from tempfile import NamedTemporaryFile
        >>> told = '''[rank1]: Traceback (most recent call last):
        ... [rank1]:   File "train.py", line 3, in main
        ... [rank1]: ValueError: a bad sample'''
        >>> with NamedTemporaryFile("w", suffix=".log") as log:
        ...     print(told, file=log, flush=True)
        ...     [finding.title for finding in diagnose(log.name)]
        ['exception']

    Several paths are the run folders of the hosts of one job. Raises ValueError where there is
    nothing to read.
    """
    from pathlib import Path

    from ddpdoctor.annotate import annotate
    from ddpdoctor.diagnose.hosts import located
    from ddpdoctor.postmortem.material import NothingToRead
    from ddpdoctor.postmortem.reading import read

    if not paths:
        raise ValueError("name a path")
    try:
        material = read(*map(Path, paths))
    except NothingToRead as error:
        raise ValueError(str(error)) from error
    return located(annotate(material.judge()), material.attempts[-1][1])
