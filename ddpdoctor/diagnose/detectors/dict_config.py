"""DDP101: distributed set-up reads attributes of a config that is still a dict."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, Raised
from ddpdoctor.diagnose.detecting import detector

_MESSAGE = re.compile(r"'dict' object has no attribute '(\w+)'")
_ABOUT_DISTRIBUTION = re.compile(r"dist|ddp|rank|world|backend|process_?group|init_|set_?up", re.I)


@detector(precedence=225)
def detect(case: Case) -> Iterator[Finding]:
    """Name the ranks that failed so before they had joined any process group."""
    hit = [each for each in case.raised if _attribute(each)]
    if not hit:
        return
    case.explain(*hit)
    attribute, place = _attribute(hit[0]), hit[0].exception.place
    ranks = tuple(each.rank.rank for each in hit)
    yield Finding(
        code="DDP101",
        title="dict-config",
        severity="error",
        certainty="proven",
        ranks=ranks,
        places=(RankPlace(ranks=ranks, place=place, doing=f"raised {hit[0].exception.type}"),),
        cause=f"the config is still a dict where distributed set-up reads config.{attribute}.",
        cure=Cure(
            text="Parse and freeze the config first, then initialise the process group from it."
        ),
        evidence=(hit[0].exception.message,),
        consequences=case.consequences(),
    )


def _attribute(raised: Raised) -> str:
    """The attribute that the dict lacks, if the failing code is about distribution; else ""."""
    exception = raised.exception
    match = _MESSAGE.search(exception.message)
    if match is None or exception.type != "AttributeError" or raised.rank.groups:
        return ""
    function = exception.place.function if exception.place else ""
    about = _ABOUT_DISTRIBUTION.search(match[1]) or _ABOUT_DISTRIBUTION.search(function)
    return match[1] if about else ""
