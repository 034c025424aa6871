"""Which rank is named, and what the test says, whatever the ranks' endings."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddpdoctor.evidence import named
from ddpdoctor.pytest_plugin.judgement import Ending, judge

LOST = "RuntimeError: [/build/gloo/transport/tcp/pair.cc:553] Connection closed by peer [::1]:1"

times = st.floats(0, 100)
passed = st.just(Ending(0, "passed"))
casualties = times.map(lambda time: Ending(0, "failed", LOST, time=time))
stuck = st.just(Ending(0, "stuck", "still running", 'File "train.py", line 3'))
causes = times.map(lambda time: Ending(0, "failed", "AssertionError: so be it", time=time)) | (
    times.map(lambda time: Ending(0, "died", "killed by SIGSEGV", "Segmentation fault", time))
)
skipped = st.just(Ending(0, "skipped", "because"))
xfailed = st.just(Ending(0, "xfailed", "known"))


def among(endings: list[Ending]) -> str:
    return f"0-{len(endings) - 1}" if len(endings) > 1 else "0"


def worlds(*kinds: st.SearchStrategy[Ending], size: int = 8) -> st.SearchStrategy[list[Ending]]:
    """Endings of several ranks, at least one of the last kind."""
    some = st.tuples(st.lists(st.one_of(*kinds), max_size=size), kinds[-1])
    mixed = some.flatmap(lambda found: st.permutations([*found[0], found[1]]))
    return mixed.map(lambda endings: [replace(e, rank=r) for r, e in enumerate(endings)])


@given(worlds(passed, casualties, stuck, skipped, xfailed, causes))
def test_the_first_rank_that_failed_by_itself_is_named(endings: list[Ending]) -> None:
    own = [e for e in endings if e.is_failure and not e.is_casualty]
    first = min(own, key=lambda e: (e.time, e.rank))
    judgement = judge(endings, timeout=30)
    assert judgement.outcome == "failed"
    assert judgement.text.startswith(f"rank {first.rank} (of {among(endings)}): {first.headline}")


@given(worlds(passed, casualties, stuck, causes))
def test_every_other_rank_is_listed_and_casualties_are_called_consequences(
    endings: list[Ending],
) -> None:
    lines = judge(endings, timeout=30).text.splitlines()
    listed = {line.split()[1]: line for line in lines if line.startswith("  rank ")}
    assert len(listed) == len(endings) - 1
    for rank, line in listed.items():
        assert ("as a consequence" in line) == endings[int(rank)].is_casualty


@given(worlds(passed, casualties, stuck, skipped))
def test_a_skip_is_a_skip_although_the_others_lost_a_peer(endings: list[Ending]) -> None:
    judgement = judge(endings, timeout=30)
    assert judgement.outcome == "skipped"
    assert judgement.text.endswith("because")


@given(worlds(passed, casualties, stuck, skipped, xfailed))
def test_an_expected_failure_of_one_rank_is_that_of_the_test(endings: list[Ending]) -> None:
    assert judge(endings, timeout=30).outcome == "xfailed"


@given(worlds(passed, stuck, casualties))
def test_casualties_without_a_cause_are_a_failure_all_the_same(endings: list[Ending]) -> None:
    judgement = judge(endings, timeout=30)
    assert judgement.outcome == "failed"
    assert "Connection closed by peer" in judgement.text.splitlines()[0]


@given(worlds(passed, stuck))
def test_ranks_that_did_not_end_are_named_with_their_stacks(endings: list[Ending]) -> None:
    text = judge(endings, timeout=2.5).text
    stuck = named([e.rank for e in endings if e.outcome == "stuck"])
    assert text.startswith(f"not over after 2.5 s on {stuck} (of {among(endings)})\n")
    assert text.count("train.py") == sum(e.outcome == "stuck" for e in endings)


@given(worlds(passed, stuck) | worlds(passed, casualties))
def test_what_the_watch_says_is_told_where_no_rank_failed_by_itself(endings: list[Ending]) -> None:
    text = judge(endings, timeout=30, verdict="✖ DDP401 and so on").text
    assert text.count("✖ DDP401 and so on") == 1
    assert text.startswith("✖") == any(e.outcome == "stuck" for e in endings)


@given(worlds(passed))
def test_a_test_passes_only_where_all_ranks_did(endings: list[Ending]) -> None:
    assert judge(endings, timeout=30).outcome == "passed"


@pytest.mark.parametrize(
    "said",
    [
        "RuntimeError: [enforce fail at pair.cc:534] Connection closed by peer [10.0.0.1]:4242",
        "RuntimeError: Read error [127.0.0.1]:36571: Connection reset by peer",
        "torch.distributed.DistBackendError: NCCL error: ncclRemoteError: A call failed possibly",
        "RuntimeError: Application timeout caused pair closure",
    ],
)
def test_what_backends_say_of_a_lost_peer_is_known(said: str) -> None:
    assert Ending(0, "failed", said).is_casualty


def test_a_users_own_error_is_no_casualty() -> None:
    assert not Ending(0, "failed", "AssertionError: the peer closed nothing").is_casualty
