"""The catalogue of pitfalls, and the words in which everything here speaks of them.

`Entry` is what is known of one code (a page), `Pitfall` one that is proven as well (a page and its
variants), `Finding` is what a diagnosis says about a job, `Verdict` is what `check` says about one
variant. Imports no torch: the variants are read from the reproducers' source, not by importing it.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, computed_field

from ddpdoctor.evidence import Place

Severity = Literal["error", "warning", "info"]
Certainty = Literal["proven", "evidence", "certain", "likely"]
Symptom = Literal["crash", "hang", "silent", "slow"]
Kind = Literal["broken", "documented", "fix"]
Phase = Literal["", "forward", "backward", "ended", "together"]
"""The part of a step that a rank is in by DDP's doing, or that it has ended."""
Status = Literal[
    "recognised",  # broken: failed, and the diagnosis named it, on the right ranks and line
    "misdiagnosed",  # broken: failed, but the diagnosis said something else
    "not reproduced",  # broken: did not fail here
    "holds",  # documented, fix: ended well, invariants hold, diagnosis is clean
    "in part",  # documented: ended well and invariants hold, but the diagnosis still warns
    "aid",  # documented: it promises no cure, and the failure is there with it as without
    "fails",  # documented, fix: crashed, hung, or broke an invariant
    "not checked",  # could not be performed here
]

_VARIANT_KINDS: tuple[Kind, ...] = ("broken", "documented", "fix")
_SECTIONS = ("What happens", "Why", "What to do", "How to verify", "See also")
_PROVEN_SECTIONS = (
    "What happens",
    "Why",
    "Example",
    "Use instead",
    "What holds",
    "What does not hold",
    "How to verify",
    "See also",
)
_CODE = r"^DDP[1-7]\d\d$"
_PAGES = Path(__file__).parent / "pages"


class CatalogError(Exception):
    """A page or a reproducer of the catalogue is malformed; the message names file and line."""


class UnknownCode(ValueError):
    """A code or prefix that no pitfall has; the message names the nearest ones."""


class Frozen(BaseModel):
    """What is known, and does not change."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class RankPlace(Frozen):
    """Where some ranks stood, and what they were doing there."""

    ranks: tuple[int, ...]
    place: Place | None
    doing: str
    """For people: "barrier() #413", "raised ValueError", "exited"."""
    waits_for: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()
    """Where these ranks run, in their order; empty if all ranks of the job run on one host."""
    phase: Phase = Field(default="", exclude=True, repr=False)
    """For those who read the source; not part of reports."""
    stack: tuple[Place, ...] = Field(default=(), exclude=True, repr=False)
    """How it came there, outermost first, for those who read the source; not part of reports."""
    unfinished: tuple[Place, ...] = Field(default=(), exclude=True, repr=False)
    """The lines at which it goes, or went, through a loader that has more; for the same."""


class Edit(Frozen):
    """Replace the text between two places: (line from 1, column from 0, in characters)."""

    start: tuple[int, int]
    end: tuple[int, int]
    text: str


class Cure(Frozen):
    """What to do about a finding."""

    text: str
    commands: tuple[str, ...] = ()
    applicability: Literal["safe", "unsafe", "manual"] = "manual"
    edits: tuple[Edit, ...] = ()
    """That do it, all together, in the file of the first place."""


class Span(Frozen):
    """What a finding is about on its first place's line, and on those below it."""

    column: int
    """From 1, in characters."""
    end_line: int
    end_column: int
    cell: int = 0
    """For a notebook: the number of the cell, in which lines then count."""


class Location(Frozen):
    """A line of a file, as the command tells it."""

    path: str
    line: int


class Finding(Frozen):
    """One thing that is wrong, in the same shape for every command."""

    model_config = ConfigDict(extra="ignore")

    code: str
    title: str
    severity: Severity
    certainty: Certainty
    ranks: tuple[int, ...]
    """The culprits. Empty where no rank is to blame more than another."""
    places: tuple[RankPlace, ...]
    """Culprits first."""
    cause: str
    cure: Cure
    evidence: tuple[str, ...] = ()
    consequences: tuple[str, ...] = ()
    """What the other ranks suffered because of it."""
    span: Span | None = None
    """Where it was read in the source."""
    is_suspicion: bool = Field(default=False, exclude=True, repr=False)
    """Harmless in most code: an info that the source does not confirm is not told."""
    has_lasted: bool = Field(default=False, exclude=True, repr=False)
    """It was waited for before it was found: one look at a job that goes on is enough."""
    may_pass: bool = Field(default=False, exclude=True, repr=False)
    """Ranks wait for one that may come yet."""
    raised: str = Field(default="", exclude=True, repr=False)
    """Of an exception that ended ranks: its type and message, as Python tells them."""

    @property
    def place(self) -> Place | None:
        """The line to look at first."""
        return self.places[0].place if self.places else None

    @computed_field
    def location(self) -> Location | None:
        """That line alone, for programs that want no more."""
        return Location(path=place.file, line=place.line) if (place := self.place) else None

    @property
    def is_narrow(self) -> bool:
        """Whether it names one failure, not a family of them."""
        return not self.code.endswith("00")


class Variant(Frozen):
    """One way to write the code of a pitfall: the bug, a piece of advice, or a cure."""

    name: str
    kind: Kind
    summary: str
    """First line of the function's docstring."""
    line: int
    source: str = ""
    """For advice: the document that gives it."""
    promises: Literal["a cure", "an aid"] = "a cure"
    """For advice: an aid helps to look further, or speaks of another failure; it is no cure."""
    speaks_of: Literal["", "nccl"] = ""
    """For advice: the one backend that it is about; on another it is not checked."""
    ranks: Literal["all", "nonzero", "any"] | tuple[int, ...] = "all"
    """For the broken form: the ranks the diagnosis must name."""
    culprits: tuple[int, ...] = ()
    """For the broken form: the lines marked `# <-- CODE`, any of which the diagnosis must name."""
    launches: int = 1
    """A race is launched up to this often, until it fails, and reported as k of n."""
    launch: str = ""
    """The command that starts it, with {proof}, {variant}, {nproc}, {port}; "" is forked ranks."""

    def command(self, proof: Path | str, *, nproc: int, port: int) -> list[str]:
        """What `launch` comes to. Raises KeyError where it holds another name in braces."""
        said = {"proof": proof, "variant": self.name, "nproc": nproc, "port": port}
        return [word.format_map(said) for word in shlex.split(self.launch)]

    @property
    def launcher(self) -> str:
        """The program that `launch` starts; "" for forked ranks."""
        words = shlex.split(self.launch)
        return next((word for word in words if word != "env" and "=" not in word), "")


class Entry(Frozen):
    """What is known of one code."""

    code: str = Field(pattern=_CODE)
    title: str
    aliases: tuple[str, ...] = ()
    """Other titles of findings that bear its code."""
    family: str
    symptoms: tuple[Symptom, ...]
    severity: Severity
    sources: tuple[str, ...]
    summary: str
    """One line: what breaks."""
    remedy: str
    """One line: what holds."""
    page: Path
    sections: dict[str, str]


AnEntry = TypeVar("AnEntry", bound=Entry)


class Pitfall(Entry):
    """One documented failure, and how it is proven."""

    needs: tuple[str, ...] = ()
    """What this machine must have to perform it: nccl, gpu, root, accelerate, torchrun."""
    proof: Path
    variants: tuple[Variant, ...]

    @property
    def broken(self) -> Variant:
        """The one broken variant."""
        return next(v for v in self.variants if v.kind == "broken")

    @property
    def launchers(self) -> tuple[str, ...]:
        """The programs that some of its variants are started by."""
        return tuple(dict.fromkeys(v.launcher for v in self.variants if v.launch))


class Verdict(Frozen):
    """What came of one variant."""

    code: str
    variant: str
    kind: Kind
    status: Status
    summary: str
    """What the variant does."""
    evidence: str
    """One line that shows why the status is what it is."""
    source: str = ""
    findings: tuple[Finding, ...] = ()
    failed_launches: int = 0
    launches: int = 0
    seconds: float = 0.0

    @property
    def is_problem(self) -> bool:
        """Whether `check` must fail: advice that does not hold is news, not a failure."""
        if self.kind == "broken":
            return self.status == "misdiagnosed"
        return self.kind == "fix" and self.status not in ("holds", "not checked")


def reproducers_folder() -> Path:
    """Where pages and reproducers lie: in the installed package, or beside it in a checkout."""
    package = Path(__file__).parent
    installed = package / "reproducers"
    return installed if installed.is_dir() else package.parent / "reproducers"


@lru_cache(maxsize=4)
def load(folder: Path | None = None) -> dict[str, Pitfall]:
    """All pitfalls by code, in the order of their codes.

    Raises CatalogError on a malformed page, a page without proof, a code used twice, or no page.
    """
    folder = folder or reproducers_folder()
    pitfalls = _by_code(map(_load_one, sorted(folder.glob("*.md"))))
    if not pitfalls:
        raise CatalogError(f"there is no page of a pitfall in {folder}")
    return pitfalls


@lru_cache(maxsize=1)
def entries() -> dict[str, Entry]:
    """The pitfalls, and the codes that have a page only: those of `env`, and each family's own.

    Raises CatalogError, as `load` does.
    """
    return _by_code([*load().values(), *map(_load_entry, sorted(_PAGES.glob("*.md")))])


def find(wanted: Sequence[str] = ()) -> list[Entry]:
    """The entries that `select` finds among all; reads the pages that speak of what is wanted.

    Raises UnknownCode and CatalogError, as `select` and `load` do.
    """
    words = [each.lower() for each in wanted]

    def speaks_of_it(page: Path) -> bool:
        front = page.read_text(encoding="utf-8").partition("\n---\n")[0].lower()
        return any(word in front for word in words)

    proven = filter(speaks_of_it, reproducers_folder().glob("*.md"))
    others = filter(speaks_of_it, _PAGES.glob("*.md"))
    near = _by_code([*map(_load_one, proven), *map(_load_entry, others)])
    try:
        return select(near or entries(), wanted)
    except UnknownCode:  # the others have names that may have been meant
        return select(entries(), wanted)


def _by_code(found: Iterable[AnEntry]) -> dict[str, AnEntry]:
    known: dict[str, AnEntry] = {}
    for entry in found:
        if (other := known.setdefault(entry.code, entry)) is not entry:
            name = entry.page.name
            raise CatalogError(f"{name}: {entry.code} is already the code of {other.page.name}")
    return dict(sorted(known.items()))


def select(
    known: dict[str, AnEntry], wanted: Iterable[str] = (), ignored: Iterable[str] = ()
) -> list[AnEntry]:
    """Those whose code starts with one of `wanted` (all, if empty), none of `ignored`.

    Raises UnknownCode for a code, title or prefix that matches nothing.
    """
    chosen = set(known) if not (prefixes := list(wanted)) else _matching(known, prefixes)
    chosen -= _matching(known, ignored)
    return [known[code] for code in sorted(chosen)]


def _matching(known: dict[str, AnEntry], prefixes: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for prefix in prefixes:
        hits = {code for code, entry in known.items() if prefix and _is_meant(entry, prefix)}
        if not hits:
            raise UnknownCode(_unknown(known, prefix))
        found |= hits
    return found


def _is_meant(entry: Entry, prefix: str) -> bool:
    named = prefix.lower() in (entry.title, *entry.aliases)
    return named or entry.code.startswith(prefix.upper())


def _unknown(known: dict[str, AnEntry], name: str) -> str:
    unproven = [entry for entry in entries().values() if not isinstance(entry, Pitfall)]
    if name and any(_is_meant(entry, name) for entry in unproven):
        return f"{name!r} cannot be performed; `ddpdoctor explain {name}` tells of it"
    codes = {title: c for c, entry in known.items() for title in (entry.title, *entry.aliases)}
    near = sorted(get_close_matches(name.upper(), known, cutoff=0.75))
    near += [codes[title] for title in get_close_matches(name.lower(), codes)]
    command = "explain --all" if len(known) == len(entries()) else "check --list"
    hint = f"`ddpdoctor {command}` has them all"
    if near:
        hint = f"did you mean {' or '.join(f'{c} ({known[c].title})' for c in near)}?"
    return f"no pitfall has the code or title {name!r}; {hint}"


def _load_one(page: Path) -> Pitfall:
    facts = _facts(page, _PROVEN_SECTIONS)
    proof = page.with_suffix(".py")
    if not proof.exists():
        raise CatalogError(f"{page.name}: its proof {proof.name} is missing")
    facts |= {"proof": proof, "variants": tuple(variants_of(proof, facts["code"]))}
    pitfall = _validated(Pitfall, facts)
    kinds = [variant.kind for variant in pitfall.variants]
    if kinds.count("broken") != 1 or "fix" not in kinds:
        raise CatalogError(f"{proof.name}: needs one @broken and at least one @fix, has {kinds}")
    return pitfall


def _load_entry(page: Path) -> Entry:
    return _validated(Entry, _facts(page, _SECTIONS))


def _validated(kind: type[AnEntry], facts: dict[str, Any]) -> AnEntry:
    try:
        return kind.model_validate(facts)
    except ValidationError as error:
        raise CatalogError(f"{facts['page'].name}: {_first_of(error)}") from error


def _facts(page: Path, expected: Iterable[str]) -> dict[str, Any]:
    """What a page says of itself in front, and its sections."""
    import yaml  # who speaks of findings alone has no need of it

    text = page.read_text(encoding="utf-8")
    match = re.match(r"---\n(.*?)\n---\n(.*)", text, re.DOTALL)
    if match is None:
        raise CatalogError(f"{page.name}:1: no front matter between two lines of ---")
    try:
        # By libyaml where it is there: it reads the pages in a tenth of the time.
        facts = yaml.load(match[1], getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        raise CatalogError(f"{page.name}: {' '.join(str(error).split())}") from error
    if not isinstance(facts, dict) or not isinstance(facts.get("code"), str):
        raise CatalogError(f"{page.name}:2: the front matter gives no code")
    sections = _sections(match[2])
    if missing := [name for name in expected if name not in sections]:
        raise CatalogError(f"{page.name}: no section {', '.join(missing)}")
    return {**facts, "page": page, "sections": sections}


def _first_of(error: ValidationError) -> str:
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


def _sections(body: str) -> dict[str, str]:
    parts = re.split(r"^## (.+)$", body, flags=re.MULTILINE)
    return {name.strip(): text.strip() for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def variants_of(proof: Path, code: str) -> Iterator[Variant]:
    """The variants of a reproducer in the order they stand, read from its source.

    The lines marked `# <-- CODE` inside the broken variant, or in a helper it shares with others,
    are the ones a diagnosis must name.
    """
    source = proof.read_text(encoding="utf-8")
    try:
        tree = ast.parse(source, filename=str(proof))
    except SyntaxError as error:
        raise CatalogError(f"{proof.name}:{error.lineno}: {error.msg}") from error
    marked = tuple(
        number
        for number, line in enumerate(source.splitlines(), 1)
        if re.search(rf"# <-- {code}\b", line)
    )
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef):
            continue
        for decorator in node.decorator_list:
            call = decorator if isinstance(decorator, ast.Call) else None
            name = call.func if call else decorator
            if isinstance(name, ast.Name) and name.id in _VARIANT_KINDS:
                try:
                    yield _variant(node, name.id, call.keywords if call else [], marked)
                except CatalogError as error:
                    raise CatalogError(f"{proof.name}:{node.lineno}: {error}") from error


def _variant(
    node: ast.FunctionDef, kind: str, keywords: list[ast.keyword], marked: tuple[int, ...]
) -> Variant:
    docstring = ast.get_docstring(node)
    if not docstring:
        raise CatalogError(f"{node.name} says not what it does")
    try:
        options = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in keywords}
    except ValueError as error:
        raise CatalogError(f"@{kind} takes literals only, for it is read and not run") from error
    facts = {
        "name": node.name,
        "kind": kind,
        "summary": docstring.splitlines()[0],
        "line": node.lineno,
        "culprits": marked if kind == "broken" else (),
    }
    try:
        variant = Variant.model_validate({**options, **facts})
        variant.command("", nproc=1, port=1)
    except ValidationError as error:
        raise CatalogError(_first_of(error)) from error
    except (KeyError, ValueError) as error:
        raise CatalogError(f"launch of {node.name} cannot be filled in: {error}") from error
    return variant
