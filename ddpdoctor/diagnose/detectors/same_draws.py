"""DDP205: noise that the training code draws for each sample is the same on every rank.

Proven: at two steps or more, the same line drew from a generator whose state was equal to the bit
on all ranks, so it drew the same numbers. Told is what has one row for each sample that the model
was given, as noise and time steps have. What is drawn for a batch of all ranks and dealt out later
has more rows, and what must be alike on all ranks (a size, a choice, noise on weights) has others.
Inside the model only Gaussian noise and random integers count: masks alike are harmless. Uniform
numbers may be either, and are told where the source says so too (`annotate`). Noise that
is gone when the model is given its samples has made one of them another, as an augmentation does:
the samples still differ, so it is information; so are whole numbers that the model is not given:
they choose samples, of a rank's own data maybe. Ranks that give each other more numbers than there
are samples, in the same step, may work on parts of one sample, as those of tensor parallelism or of
a grid do, and draw alike on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, callers
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.replicas import is_a_replica
from ddpdoctor.evidence import Place, RankEvidence, named
from ddpdoctor.evidence.events.draws import Draw

_ENOUGH = 2
_MASKS = frozenset({"rand", "rand_like", "uniform_", "uniform", "random"})


@detector(precedence=424)
def detect(case: Case) -> Iterator[Finding]:
    """One finding: the lines that draw alike, in their order."""
    ranks = case.evidence.ranks
    if len(ranks) < 2 or not all(map(is_a_replica, ranks)):
        return
    steps: dict[Place, set[int]] = {}
    kept: set[Place] = set()
    masks: set[Place] = set()
    for key, mine in _by_key(ranks[0]).items():
        theirs = [_by_key(rank).get(key) for rank in ranks[1:]]
        if all(other is not None and _alike(mine, other) for other in theirs):
            steps.setdefault(mine.place, set()).add(mine.step)
            if mine.inside and mine.by in _MASKS:
                masks.add(mine.place)
            elif mine.kept:
                kept.add(mine.place)
    found = [place for place, seen in steps.items() if len(seen) >= _ENOUGH]
    lines = [p for p in found if p in kept] or [p for p in found if p not in masks] or found
    if not lines:
        return
    numbers = tuple(rank.rank for rank in ranks)
    seeds = [(rank.rank, rank.seeds[-1]) for rank in ranks if rank.seeds]
    seen = sorted(steps[lines[0]])
    yield Finding(
        code="DDP205",
        title="same-noise-everywhere",
        severity="warning" if lines[0] in kept else "info",
        certainty="proven",
        is_suspicion=lines[0] in masks,
        ranks=numbers,
        places=(
            *(RankPlace(ranks=numbers, place=line, doing="draws the same") for line in lines),
            *(
                RankPlace(ranks=(rank,), place=seed.place, doing=f"seed {seed.value}")
                for rank, seed in seeds
            ),
            *(callers(numbers, seeds[0][1].way, seeds[0][1].place)[:1] if seeds else ()),
        ),
        cause=f"{named(numbers)} draw the same numbers, a row for each sample that they give to "
        f"the model: their generators were in one state before steps {', '.join(map(str, seen))}.",
        cure=Cure(
            text="Once the model is built, seed each rank differently (torch.manual_seed(seed + "
            "rank)), or draw from a generator of the rank's own."
        ),
    )


def _by_key(rank: RankEvidence) -> dict[tuple[int, int], Draw]:
    return {(draw.step, draw.number): draw for draw in rank.of(Draw) if _counts(draw)}


def _counts(draw: Draw) -> bool:
    rows = draw.shape[0] if draw.shape else 0
    return 2 <= rows == draw.rows and draw.exchanged <= rows


def _alike(one: Draw, other: Draw) -> bool:
    same = (one.place, one.by, one.shape) == (other.place, other.by, other.shape)
    return same and one.state == other.state and bool(one.state)
