"""Sums of what ranks have for themselves: only of calls that all have made is anything said."""

from __future__ import annotations

from ddpdoctor.diagnose import diagnose
from ddpdoctor.evidence import Collective, Evidence, Group, Place, RankEvidence
from ddpdoctor.evidence.events.reads import Read

HERE, THERE = Place("/home/user/train.py", 9, "main"), Place("/home/user/train.py", 12, "main")


def test_a_sum_that_only_one_rank_is_known_to_have_made_says_nothing() -> None:
    ranks = [RankEvidence(number, 2, pid=1000 + number) for number in range(2)]
    for rank in ranks:
        rank.groups["0"] = Group("0", (0, 1), "gloo", 1800.0, None)
    ranks[0].collectives = [
        Collective(
            "0", seq, "all_reduce", seq + 0.1, HERE, reduce_op="SUM", values=(seq,), losses=(seq,)
        )
        for seq in range(1, 6)
    ]
    ranks[0].of(Read).extend(
        Read(seq, float(2 * seq).hex(), THERE, seq + 0.2) for seq in range(1, 6)
    )
    assert diagnose(Evidence(2, ranks)) == []
