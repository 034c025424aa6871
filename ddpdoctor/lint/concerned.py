"""Which files have to do with several ranks, by their text."""

from __future__ import annotations

import re

from ddpdoctor.lint.engine.libraries import libraries_of_ranks

# What makes a file one of several ranks beside the libraries that it names.
_BY_ITSELF = re.compile(rb"\(1(\.0)? - \w+\) \*|\bRANK\b|\bno_sync\b")
# What a class may give samples by that each rank, or each worker, has in its own way.
SAMPLES = re.compile(r"listdir|scandir|glob|iterdir|walk\(|default_rng|RandomState|Random\(")
# In a project of many ranks, a file with one of these concerns them too.
AMONG_RANKS = re.compile(SAMPLES.pattern.encode() + rb"|arccos|\bacos")


def is_of_ranks(data: bytes) -> bool:
    """Whether a file has to do with several ranks by its own text."""
    return bool(libraries_of_ranks().search(data) or _BY_ITSELF.search(data))
