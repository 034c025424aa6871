"""Listens to how the data is dealt out: to samplers, loaders and their iterators."""

from __future__ import annotations

import atexit
import functools
from collections.abc import Callable
from typing import Any

from ddpdoctor.watch.aside import aside, is_compiling, skip
from ddpdoctor.watch.exceptions import passing
from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.loading import Loading
from ddpdoctor.watch.log import Log


def install(log: Log) -> None:
    """Wrap torch's samplers, Subset, DataLoader and its iterators, and `Join`."""
    from torch.distributed.algorithms.join import Join
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DataLoader, Subset, dataloader, distributed

    watched = Loading(log)
    _after_init(distributed.DistributedSampler, watched.sampler_built)
    _before_call(distributed.DistributedSampler, "set_epoch", watched.epoch_told)
    _after_init(Subset, watched.subset_built)
    _after_init(DataLoader, watched.loader_built)
    iterator_type: Any = dataloader._BaseDataLoaderIter
    # These are private: another torch may have none of them.
    harmless(_wrap_iterators)(DataLoader, iterator_type, watched)
    harmless(_around_forward)(DistributedDataParallel, watched)
    _before_call(Join, "__enter__", functools.partial(_joined, log))
    _before_call(Join, "__exit__", functools.partial(_left, log))
    atexit.register(watched.flush)


def _joined(log: Log, join: Any) -> None:
    log.write("join")
    log.in_join = bool(getattr(join, "_enable", True))


def _left(log: Log, join: Any) -> None:
    log.in_join = False


def _after_init(cls: Any, note: Callable[[Any], object]) -> None:
    original = cls.__init__

    @functools.wraps(original)
    def construct(made: Any, *args: Any, **kwargs: Any) -> None:
        original(made, *args, **kwargs)
        note(made)

    cls.__init__ = construct


def _before_call(cls: Any, method: str, note: Callable[[Any], object]) -> None:
    original = getattr(cls, method)

    @functools.wraps(original)
    def call(called: Any, *args: Any, **kwargs: Any) -> Any:
        note(called)
        return original(called, *args, **kwargs)

    setattr(cls, method, call)


def _wrap_iterators(loader_type: Any, iterator_type: Any, watched: Loading) -> None:
    begin, next_index, advance = (
        loader_type.__iter__,
        iterator_type._next_index,
        iterator_type.__next__,
    )

    @functools.wraps(begin)
    def watched_begin(loader: Any) -> Any:
        watched.beginning(loader)
        iterator = begin(loader)
        watched.begun(loader, iterator)
        return iterator

    @functools.wraps(next_index)
    def watched_next_index(iterator: Any) -> Any:
        index = next_index(iterator)
        watched.chosen(iterator, index)
        return index

    @functools.wraps(advance)
    def watched_advance(iterator: Any) -> Any:
        try:
            batch = advance(iterator)
        except StopIteration:
            watched.ended(iterator)
            raise
        except Exception as error:
            passing(watched.log, error, "loader")
            raise
        watched.drawn(iterator, batch)
        return batch

    loader_type.__iter__ = watched_begin
    iterator_type._next_index = watched_next_index
    iterator_type.__next__ = watched_advance


def _around_forward(wrapper_type: Any, watched: Loading) -> None:
    original = wrapper_type._pre_forward

    @functools.wraps(original)
    def pre_forward(wrapper: Any, *inputs: Any, **kwargs: Any) -> Any:
        if not is_compiling() and watched.unfed is not None:
            fed(inputs, kwargs)
        return original(wrapper, *inputs, **kwargs)

    fed = aside(watched.fed)
    wrapper_type._pre_forward = pre_forward
    skip(pre_forward)
