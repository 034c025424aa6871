"""One file for each thing that can be recognised.

The order is the precedence: a chain of events before its links, the named before the general.
"""

from collections.abc import Callable, Iterator

from ddpdoctor.catalog import Finding
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detectors import (
    checkpoint_race,
    dict_config,
    ema_deadlock,
    general,
    premature_sampler,
    unused_parameters,
)

DETECTORS: tuple[Callable[[Case], Iterator[Finding]], ...] = (
    ema_deadlock.detect,
    checkpoint_race.detect,
    dict_config.detect,
    premature_sampler.detect,
    unused_parameters.detect,
    general.detect,
)
