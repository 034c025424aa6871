"""The one bad link, host or rank is named, and noise is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from measurements import cluster

from ddpdoctor.probe import rank as probing
from ddpdoctor.probe.against import NotComparable, slower
from ddpdoctor.probe.judge import judge, unchecked
from ddpdoctor.probe.model import Check, HostClock, Measured, RankFacts


def named(*arguments: object, **changes: object) -> list[tuple[str, tuple[int, ...]]]:
    return [(one.code, one.ranks) for one in judge(cluster(*arguments, **changes))]  # type: ignore[arg-type]


@given(
    ranks=st.integers(1, 12),
    per_host=st.integers(1, 4),
    noise=st.lists(st.floats(0.6, 1.4), min_size=200, max_size=200),
)
def test_noise_of_forty_per_cent_accuses_nobody(
    ranks: int, per_host: int, noise: list[float]
) -> None:
    assert (
        named(
            ranks,
            per_host,
            bandwidth=lambda a, b: 1e9 * noise[(a * 13 + b) % 200],
            compute=lambda rank: 0.01 * min(1.3, max(0.8, noise[rank])),
        )
        == []
    )


@given(st.integers(3, 12), st.data())
def test_one_bad_link_is_named_by_its_two_ranks(ranks: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, ranks - 2))
    second = data.draw(st.integers(first + 1, ranks - 1))
    found = named(ranks, 1, bandwidth=lambda a, b: 1e8 if (a, b) == (first, second) else 1e9)
    assert found == [("DDP721", (first, second))]


@given(st.integers(3, 12), st.data())
def test_a_host_whose_links_are_all_slow_is_named_once(ranks: int, data: st.DataObject) -> None:
    bad = data.draw(st.integers(0, ranks - 1))
    found = named(ranks, 1, bandwidth=lambda a, b: 1e8 if bad in (a, b) else 1e9)
    assert found == [("DDP721", (bad,))]


def test_links_within_a_host_are_no_measure_for_those_between_hosts() -> None:
    assert named(8, 4, bandwidth=lambda a, b: 1e10 if a // 4 == b // 4 else 1e9) == []


def test_a_slow_rank_is_named_only_where_both_kinds_of_work_say_so() -> None:
    assert named(4, 1, compute=lambda rank: 0.03 if rank == 2 else 0.01) == [("DDP722", (2,))]
    once = cluster(4, 1)
    ranks = list(once.ranks)
    ranks[2] = ranks[2].model_copy(update={"compute": 0.03})
    assert judge(once.model_copy(update={"ranks": tuple(ranks)})) == []


def test_a_slow_rank_is_known_among_ranks_that_are_disturbed_now_and_then() -> None:
    def taking(rank: RankFacts, least: float, most: float) -> RankFacts:
        took = {"compute": most, "step": most}
        return rank.model_copy(
            update=took | {"compute_range": (least, most), "step_range": (least, most)}
        )

    once = cluster(3, 1)
    first, second, third = once.ranks
    disturbed = (taking(first, 0.01, 0.03), taking(second, 0.01, 0.03))
    slow = once.model_copy(update={"ranks": (*disturbed, taking(third, 0.04, 0.05))})
    assert [(one.code, one.ranks) for one in judge(slow)] == [("DDP722", (2,))]
    passing = once.model_copy(update={"ranks": (*disturbed, taking(third, 0.012, 0.2))})
    assert judge(passing) == []


def test_a_slow_rank_is_known_where_other_work_keeps_all_of_them_waiting() -> None:
    def busy(rank: RankFacts, alone: float) -> RankFacts:
        took = {"compute": 0.06, "step": 0.06, "compute_alone": alone, "step_alone": alone}
        return rank.model_copy(
            update=took | {"compute_range": (0.05, 0.07), "step_range": (0.05, 0.07)}
        )

    once = cluster(3, 1)
    for slow, named_ in ((0.03, [(2,)]), (0.012, [])):
        ranks = [busy(one, slow if one.rank == 2 else 0.01) for one in once.ranks]
        found = judge(once.model_copy(update={"ranks": tuple(ranks)}))
        assert [one.ranks for one in found] == named_


def test_a_setting_that_one_rank_lacks_is_named_with_that_rank(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NCCL_ALGO", "Ring")
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "eth0")  # called otherwise on each host
    monkeypatch.setenv("NCCL_DEBUG_FILE", "/tmp/nccl.%h.%p")
    assert probing._must_agree() == {"NCCL_ALGO": "Ring"}
    same = cluster(3, 1)
    one, *others = same.ranks
    told = one.model_copy(update={"variables": probing._must_agree()})
    (found,) = judge(same.model_copy(update={"ranks": (told, *others)}))
    assert (found.code, found.severity, found.ranks) == ("DDP719", "warning", (0,))
    assert found.evidence == ("Ring: rank 0", "not set: ranks 1, 2")
    all_told = [rank.model_copy(update={"variables": told.variables}) for rank in same.ranks]
    assert judge(same.model_copy(update={"ranks": tuple(all_told)})) == []


def test_wrong_values_are_an_error_and_proven() -> None:
    wrong = Check(
        operation="broadcast", dtype="int64", state="wrong", detail="[3] is 0, not 2", ranks=(1,)
    )
    (found,) = judge(cluster(2, 2, checks=(wrong,)))
    assert (found.code, found.severity, found.certainty, found.ranks) == (
        "DDP720",
        "error",
        "proven",
        (1,),
    )


def test_what_a_backend_does_not_support_is_no_fault() -> None:
    refused = Check(operation="reduce", dtype="bfloat16", state="unsupported", detail="no")
    assert named(2, 2, checks=(refused,)) == []


def test_clocks_are_apart_only_beyond_what_the_exchange_can_tell() -> None:
    far = HostClock(host="node1", offset=-3.0, uncertainty=0.001)
    near = HostClock(host="node1", offset=3.0, uncertainty=2.0)
    assert [code for code, _ in named(2, 1, clocks=(far,))] == ["DDP718"]
    assert named(2, 1, clocks=(near,)) == []


def test_what_became_slower_is_named_and_what_became_faster_is_not() -> None:
    then = cluster(3, 1)
    now = cluster(
        3,
        1,
        bandwidth=lambda a, b: 2e8 if (a, b) == (0, 2) else 2e9,
        compute=lambda rank: 0.02 if rank == 1 else 0.005,
    )
    found, busy = slower(now, then)
    assert busy == []
    assert [(one.code, one.ranks) for one in found] == [("DDP724", (0, 2)), ("DDP724", (1,))]
    assert slower(then, then) == ([], [])


def test_what_was_disturbed_now_and_then_is_not_called_slower() -> None:
    then = cluster(2, 2)
    (point,) = then.points
    disturbed = point.model_copy(update={"seconds": 5 * point.seconds})
    slow = disturbed.model_copy(update={"fastest": 2 * point.seconds})
    assert slower(then.model_copy(update={"points": (disturbed,)}), then) == ([], [])
    ((found,), _) = slower(then.model_copy(update={"points": (slow,)}), then)
    assert found.cause == "all_reduce takes 2.0 times as long as then"


def test_one_collective_alone_is_no_slower_network() -> None:
    quiet = cluster(2, 2)
    (point,) = quiet.points
    slow = {"seconds": 0.003, "fastest": 0.003}
    names = ("all_reduce", "all_gather", "broadcast")
    points = [point.model_copy(update={"operation": name}) for name in names]
    then = quiet.model_copy(update={"points": tuple(points)})
    for count, told in ((1, 0), (2, 2), (3, 3)):
        taken = [one.model_copy(update=slow) for one in points[:count]]
        now = then.model_copy(update={"points": (*taken, *points[count:])})
        assert len(slower(now, then)[0]) == told


def test_what_differs_by_no_more_than_either_varied_is_not_called_slower() -> None:
    def busy(rank: RankFacts, most: float) -> RankFacts:
        took = {"compute": 0.02, "step": 0.02}
        return rank.model_copy(
            update=took | {"compute_range": (0.016, 0.03), "step_range": (0.016, most)}
        )

    quiet = cluster(2, 2)
    (point,), (link,) = quiet.points, quiet.links
    ranged = {"compute_range": (0.009, 0.012), "step_range": (0.009, 0.012)}
    then = quiet.model_copy(
        update={"ranks": tuple(one.model_copy(update=ranged) for one in quiet.ranks)}
    )
    slow = then.model_copy(
        update={
            "points": (point.model_copy(update={"seconds": 0.003, "fastest": 0.002}),),
            "links": (link.model_copy(update={"bandwidth": 2e8}),),
            "ranks": tuple(busy(one, 0.03) for one in then.ranks),
        }
    )
    assert len(slower(slow, then)[0]) == 4
    varied = then.model_copy(
        update={
            "points": (point.model_copy(update={"slowest": 0.0025}),),
            "links": (link.model_copy(update={"lowest": 1.5e8}),),
            "ranks": tuple(
                one.model_copy(update={"step_range": (0.009, 0.017)}) for one in then.ranks
            ),
        }
    )
    assert slower(slow, varied) == ([], [])


def test_what_is_slow_by_other_work_alone_is_not_checked_and_what_is_slow_beside_it_is_named() -> (
    None
):
    def with_wait(alone: float) -> Measured:
        busy = cluster(3, 1, bandwidth=lambda a, b: 1e8 if (a, b) == (0, 2) else 1e9)
        links = [
            one.model_copy(
                update={"bandwidth_alone": alone if one.second - one.first == 2 else 1e9}
            )
            for one in busy.links
        ]
        return busy.model_copy(update={"links": tuple(links)})

    said = "Not checked: whether the link of ranks 0 and 2 is slow; "
    assert judge(with_wait(9e8)) == []
    assert [one.startswith(said) for one in unchecked(with_wait(9e8))] == [True]
    assert [one.ranks for one in judge(with_wait(1.2e8))] == [(0, 2)]
    assert unchecked(with_wait(1.2e8)) == []


def test_a_host_is_named_whose_links_all_look_slow_though_one_may_do_so_by_other_work() -> None:
    slow = cluster(3, 1, bandwidth=lambda a, b: 1e8 if 1 in (a, b) else 1e9)
    surely, perhaps = {"bandwidth_alone": 1.1e8}, {"bandwidth_alone": 5e9}
    for told, expected in ((surely, [(1,)]), (perhaps, [])):
        links = [
            one.model_copy(update=told if (one.first, one.second) == (1, 2) else perhaps)
            for one in slow.links
        ]
        measured = slow.model_copy(update={"links": tuple(links)})
        assert [one.ranks for one in judge(measured)] == expected
        assert len(unchecked(measured)) == (0 if expected else 2)


def test_what_became_slower_by_other_work_alone_is_not_checked() -> None:
    then = cluster(2, 1)
    (point,), (link,) = then.points, then.links
    slow = {
        "compute": 0.03,
        "step": 0.03,
        "compute_range": (0.02, 0.04),
        "step_range": (0.02, 0.04),
    }

    def now(part: float) -> Measured:
        """Three times slower than then, of which so much by itself."""
        alone = {"compute_alone": 0.01 * part, "step_alone": 0.01 * part}
        slow_point = {"seconds": 0.003, "fastest": 0.003, "alone": 0.001 * part}
        slow_link = {"bandwidth": 3e8, "bandwidth_alone": 1e9 / part}
        return then.model_copy(
            update={
                "points": (point.model_copy(update=slow_point),),
                "links": (link.model_copy(update=slow_link),),
                "ranks": tuple(one.model_copy(update=slow | alone) for one in then.ranks),
            }
        )

    found, busy = slower(now(1.1), then)
    assert found == []
    assert [one.split(" became ")[0] for one in busy] == [
        "Not checked: whether all_reduce",
        "Not checked: whether the link of ranks 0 and 1",
        "Not checked: whether rank 0 on node0",
        "Not checked: whether rank 1 on node1",
    ]
    found, busy = slower(now(2.5), then)
    assert (len(found), busy) == (4, [])


def test_probes_of_other_worlds_are_not_compared() -> None:
    with pytest.raises(NotComparable, match="world_size 3"):
        slower(cluster(2, 1), cluster(3, 1))
