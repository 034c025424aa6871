"""DDP215: an IterableDataset gives every rank, or every worker of a rank, the same samples."""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding
from ddpdoctor.diagnose import loaders
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.evidence import Loader


@detector(precedence=460)
def detect(case: Case) -> Iterator[Finding]:
    """Name the streams that are read more than once."""
    for kin in loaders.training(case.evidence):
        if not all(each.iterable for each in kin.values()):
            continue
        readers = [
            *(["rank"] if _same_on_all_ranks(kin) and not _is_dealt_later(kin) else []),
            *(["worker"] if all(map(_same_in_all_workers, kin.values())) else []),
        ]
        if not readers:
            continue
        first = kin[0]
        yield Finding(
            code="DDP215",
            title="iterable-not-sharded",
            severity="warning",
            certainty="proven",
            ranks=tuple(sorted(kin)),
            places=(
                *loaders.places(kin, f"built the loader of {first.dataset}"),
                *loaders.makers(kin),
            ),
            cause=f"{first.dataset} gives every {' and every '.join(readers)} the same samples: "
            "the first batches are equal.",
            cure=Cure(
                text="Let __iter__ skip what belongs to others, by rank and by get_worker_info()."
            ),
            evidence=(f"{len(kin)} ranks with {first.workers} workers each",),
        )


def _content(loader: Loader) -> tuple[str, ...]:
    return loaders.first_epoch(loader).content


def _same_on_all_ranks(kin: loaders.Kin) -> bool:
    """Whether the ranks read equal batches, of a stream that is not the same thing all over."""
    shortest = min(len(_content(each)) for each in kin.values())
    read = {_content(each)[:shortest] for each in kin.values()}
    return len(read) == 1 and "" not in next(iter(read)) and len(set(next(iter(read)))) > 1


def _is_dealt_later(kin: loaders.Kin) -> bool:
    return kin[0].by_rank or loaders.is_split_later(kin)


def _same_in_all_workers(loader: Loader) -> bool:
    """Whether each round of the workers gives one batch as often as there are workers."""
    content, workers = _content(loader), loader.workers
    if workers < 2 or len(content) <= workers or "" in content:
        return False
    return len(set(content[:workers])) == 1 and content[workers] != content[0]
