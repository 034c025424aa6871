"""The pages of `ddpdoctor explain`: what is known of a code, and how it is proven."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ddpdoctor.catalog import Entry, Pitfall
from ddpdoctor.report.output import Page
from ddpdoctor.report.words import KINDS

if TYPE_CHECKING:
    from rich.console import RenderableType


def as_markdown(entry: Entry) -> str:
    """The page of one code, which is also its plain text."""
    return "\n\n".join(
        (
            f"# {entry.code} {entry.title}",
            f"{', '.join(entry.symptoms)} ({entry.severity}). {entry.summary}",
            f"**What to do:** {entry.remedy}",
            *(f"## {name}\n\n{text}" for name, text in entry.sections.items()),
            *(_proof(entry) if isinstance(entry, Pitfall) else ()),
            "Sources: " + "; ".join(entry.sources),
        )
    )


def _proof(pitfall: Pitfall) -> tuple[str, str]:
    variants = "\n".join(
        f"- {KINDS[v.kind]} `{v.name}`: {v.summary}" + (f" ({v.source})" if v.source else "")
        for v in pitfall.variants
    )
    commands = (
        f"- all of them here: `ddpdoctor check --select {pitfall.code}`\n"
        f"- one alone: `{_command(pitfall)}`"
    )
    return f"## Proof\n\n{variants}", commands


def as_text(entries: Sequence[Entry]) -> str:
    """The pages, one below the other."""
    return "\n\n\n".join(map(as_markdown, entries)) + "\n"


def for_terminal(entries: Sequence[Entry], page: Page) -> str:
    """The pages as a terminal shows Markdown best."""
    from rich.markdown import Markdown
    from rich.text import Text

    parts: list[RenderableType] = []
    for entry in entries:
        title, body = as_markdown(entry).split("\n", 1)
        heading = Text(f"{title.removeprefix('# ')}\n", "bold")
        parts += [heading, Markdown(body, code_theme="ansi_dark"), Text()]
    return page.lay_out(*parts)


def as_json(entries: Sequence[Entry]) -> str:
    """All that is known of the codes, as a list."""
    return json.dumps([entry.model_dump(mode="json") for entry in entries], indent=2) + "\n"


def listing(pitfalls: Sequence[Pitfall]) -> str:
    """A line for each pitfall, with what a machine must have to perform it.

    Those with variants that `--suite quick` leaves out name the launchers that these start.
    """
    width = max(len(pitfall.title) for pitfall in pitfalls)
    span = max(len(", ".join(pitfall.symptoms)) for pitfall in pitfalls)
    return "".join(
        f"{p.code}  {p.title:{width}}  {', '.join(p.symptoms):{span}}  {p.summary}"
        + (f" (needs {', '.join(p.needs)})" if p.needs else "")
        + (f" (starts {', '.join(p.launchers)})" if p.launchers else "")
        + "\n"
        for p in pitfalls
    )


def _command(pitfall: Pitfall) -> str:
    if not pitfall.broken.launch:
        return f"torchrun --nproc-per-node=4 {pitfall.proof} broken"
    return shlex.join(pitfall.broken.command(pitfall.proof, nproc=4, port=29500))
