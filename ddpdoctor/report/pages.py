"""The pages of `ddpdoctor explain`: what is known of a pitfall, and how it is proven."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ddpdoctor.catalog import Pitfall
from ddpdoctor.report.output import Page
from ddpdoctor.report.words import KINDS

if TYPE_CHECKING:
    from rich.console import RenderableType


def as_markdown(pitfall: Pitfall) -> str:
    """The page of one pitfall, which is also its plain text."""
    sections = [f"## {name}\n\n{text}" for name, text in pitfall.sections.items()]
    variants = "\n".join(
        f"- {KINDS[v.kind]} `{v.name}`: {v.summary}" + (f" ({v.source})" if v.source else "")
        for v in pitfall.variants
    )
    return "\n\n".join(
        (
            f"# {pitfall.code} {pitfall.title}",
            f"{', '.join(pitfall.symptoms)} ({pitfall.severity}). {pitfall.summary}",
            f"**What to do:** {pitfall.remedy}",
            *sections,
            f"## Proof\n\n{variants}",
            f"- all of them here: `ddpdoctor check --select {pitfall.code}`\n"
            f"- one alone: `{_command(pitfall)}`",
            "Sources: " + "; ".join(pitfall.sources),
        )
    )


def as_text(pitfalls: Sequence[Pitfall]) -> str:
    """The pages, one below the other."""
    return "\n\n\n".join(map(as_markdown, pitfalls)) + "\n"


def for_terminal(pitfalls: Sequence[Pitfall], page: Page) -> str:
    """The pages as a terminal shows Markdown best."""
    from rich.markdown import Markdown
    from rich.text import Text

    parts: list[RenderableType] = []
    for pitfall in pitfalls:
        title, body = as_markdown(pitfall).split("\n", 1)
        heading = Text(f"{title.removeprefix('# ')}\n", "bold")
        parts += [heading, Markdown(body, code_theme="ansi_dark"), Text()]
    return page.lay_out(*parts)


def as_json(pitfalls: Sequence[Pitfall]) -> str:
    """All that is known of the pitfalls, as a list."""
    return json.dumps([pitfall.model_dump(mode="json") for pitfall in pitfalls], indent=2) + "\n"


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
