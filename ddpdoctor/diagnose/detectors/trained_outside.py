"""DDP300: parameters that an optimizer trains beside a DDP, and that nothing keeps equal."""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.detectors.silent_divergence import listed
from ddpdoctor.diagnose.replicas import divergences, outside


@detector(precedence=405)
def detect(case: Case) -> Iterator[Finding]:
    """Only where the wrapped models themselves are equal."""
    if not case.ended_well or divergences(case) or (found := outside(case)) is None:
        return
    ranks, optimizer, step, names = found
    numbers = tuple(rank.rank for rank in ranks)
    samples = [s for s in ranks[0].samples if (s.wrapper, s.optimizer) == (None, optimizer)]
    wrapped = [ranks[0].wrappers[w] for w, o in ranks[0].training if o == optimizer]
    since = f"equal at the first step, different by step {step}"
    yield Finding(
        code="DDP300",
        title="silent-divergence",
        severity="error" if step > 1 else "warning",
        certainty="evidence",
        ranks=numbers,
        places=(
            RankPlace(ranks=numbers, place=samples[0].place, doing="optimizer.step()"),
            *(
                RankPlace(ranks=numbers, place=each.place, doing="wrapped another module")
                for each in wrapped
            ),
        ),
        cause=f"{listed(names)} are trained outside of DistributedDataParallel: "
        f"{since if step > 1 else 'different from the first step on'}, for nobody reduces their "
        "gradients.",
        cure=Cure(text="Wrap that module in DistributedDataParallel too."),
    )
