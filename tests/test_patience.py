"""The bound that most tests of real processes trust."""

import time

import pytest

from tests import patience


@pytest.mark.parametrize(("share", "seconds"), [(1.0, 0.3), (0.5, 0.6), (0.001, 1.8)])
def test_a_second_counts_for_what_this_process_gets_of_a_core_but_not_for_ever_less(
    share: float, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0

    def sleep(pause: float) -> None:
        nonlocal now
        now += pause

    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setattr(patience, "_share", lambda: share)
    assert not patience.within(0.3, lambda: False)
    assert now == pytest.approx(seconds, abs=0.11)


def test_what_comes_true_is_not_waited_for_any_longer() -> None:
    asked = iter([False, True])
    assert patience.within(60, lambda: next(asked))
