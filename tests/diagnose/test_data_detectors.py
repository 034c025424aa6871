"""Bugs of the data family are named from simulated evidence; correct jobs are not."""

from __future__ import annotations

import itertools
import signal
from dataclasses import replace
from typing import Any

import pytest

from ddpdoctor.evidence import (
    Collective,
    ExceptionRecord,
    Fate,
    FileEvent,
    Group,
    Place,
    RankEvidence,
)
from ddpdoctor.evidence.events.meant import Meant
from ddpdoctor.evidence.events.reads import Read
from ddpdoctor.evidence.events.reordered import Reordered
from tests.diagnose.data_simulation import (
    LOADER,
    SAMPLER,
    SPLIT,
    TRAIN,
    WORLD,
    epoch,
    lines,
    loader,
    only,
    said,
    sampler,
    shards,
    waiting,
    world,
)


def test_shards_of_a_sampler_give_no_finding() -> None:
    assert said(world(shards())) == []


def test_one_order_on_all_ranks_is_proof_that_nothing_deals_samples_out() -> None:
    finding = only(world([[loader(epoch(order=7))] for _ in range(WORLD)]))
    assert (finding.code, finding.certainty, finding.ranks) == ("DDP202", "proven", (0, 1, 2, 3))
    assert lines(finding) == [20, 30]
    assert "all 16 samples of Images" in finding.cause


def test_a_loader_that_one_line_builds_for_each_epoch_is_one_finding() -> None:
    found = world([[loader(epoch(order=7)), loader(epoch(order=9))] for _ in range(WORLD)])
    assert only(found).code == "DDP202"


def test_whole_passes_in_orders_of_their_own_are_evidence_of_it() -> None:
    finding = only(world([[loader(epoch(order=rank), plain=True)] for rank in range(WORLD)]))
    assert (finding.code, finding.certainty) == ("DDP202", "evidence")


@pytest.mark.parametrize(("batches", "told"), [(4, ["DDP202"]), (3, [])])
def test_a_pass_that_nobody_ends_is_whole_with_its_last_batch(
    batches: int, told: list[str]
) -> None:
    """A trainer that counts batches does not ask for one more."""
    passes = [epoch(order=rank, ended=None, batches=batches) for rank in range(WORLD)]
    found = world([[loader(each, plain=True)] for each in passes])
    assert [each.code for each in said(found)] == told


def test_samplers_that_were_all_told_one_rank_are_named() -> None:
    told = [[loader(epoch(order=7), sampler=sampler(0))] for _ in range(WORLD)]
    finding = only(world(told))
    assert (finding.code, finding.certainty) == ("DDP202", "proven")
    assert lines(finding) == [SAMPLER.line, 20, 30]
    assert "its sampler deals out part 0 on each" in finding.cause
    assert "rank=dist.get_rank()" in finding.cure.text


def without_wrapper(ranks: list[RankEvidence]) -> None:
    for rank in ranks:
        rank.wrappers.clear()


def with_subgroups(ranks: list[RankEvidence]) -> None:
    for rank in ranks:
        rank.groups["1"] = Group("1", (rank.rank // 2 * 2, rank.rank // 2 * 2 + 1), "gloo", 9, None)


@pytest.mark.parametrize("change", [without_wrapper, with_subgroups])
def test_ranks_that_share_data_outside_of_plain_ddp_are_left_alone(change: Any) -> None:
    found = world([[loader(epoch(order=7))] for _ in range(WORLD)])
    change(found)
    assert said(found) == []


@pytest.mark.parametrize(
    "facts",
    [
        {"by_rank": True},
        {"identity": ""},
        {"length": None, "iterable": True},
        {"epochs": {1: epoch(order=7, rows=8, fed=2)}},
    ],
    ids=["dealt out by the user's code", "cannot be looked into", "a stream", "split later"],
)
def test_a_set_that_may_be_another_on_each_rank_is_not_called_the_same(facts: Any) -> None:
    default = {"epochs": {1: epoch(order=7)}}
    assert said(world([[loader(**{**default, **facts})] for _ in range(WORLD)])) == []


def test_sets_that_differ_between_the_ranks_are_not_called_the_same() -> None:
    found = [[loader(epoch(order=7), identity=f"shard {rank}")] for rank in range(WORLD)]
    assert said(world(found)) == []


def test_whole_passes_in_evaluation_are_nothing_to_speak_of() -> None:
    held = [[loader(epoch(order=7, steps=0, graded=False))] for _ in range(WORLD)]
    assert said(world(held)) == []


def test_an_order_that_comes_again_is_a_missing_set_epoch() -> None:
    twice = [
        [
            loader(
                epoch(order=rank, sampler_epoch=0),
                epoch(60.0, order=rank, sampler_epoch=0),
                sampler=sampler(rank, length=64),
            )
        ]
        for rank in range(WORLD)
    ]
    finding = only(world(twice))
    assert (finding.code, finding.certainty) == ("DDP203", "proven")
    assert lines(finding) == [21, 20, 30]


SHUFFLES = Place("/home/user/data.py", 7, "__iter__")


@pytest.mark.parametrize(
    ("states", "orders", "codes"),
    [
        (("a", "a"), (3, 3), ["DDP203"]),
        (("a", "b"), (3, 4), []),
        (("a", "b", "b", "c"), (3, 4, 4, 5), []),
        (("a", "b"), (3, 3), []),
        (("", ""), (3, 3), []),
    ],
    ids=["one seed", "seed and epoch", "once more", "an order of its own", "nothing is shuffled"],
)
def test_a_sampler_of_the_users_own_that_shuffles_twice_from_one_state_repeats_itself(
    states: tuple[str, ...], orders: tuple[int, ...], codes: list[str]
) -> None:
    found = [
        [
            loader(
                *(
                    epoch(
                        begun,
                        order=10 * order + rank,
                        mixed=tuple(filter(None, [state])),
                        mixed_at=SHUFFLES if state else None,
                    )
                    for begun, state, order in zip(itertools.count(50.0, 10.0), states, orders)
                ),
                by_rank=True,
            )
        ]
        for rank in range(WORLD)
    ]
    findings = said(world(found))
    assert [each.code for each in findings] == codes
    assert all(each.places[0].place == SHUFFLES for each in findings)


def test_torchs_own_sampler_is_named_before_the_line_that_has_it_shuffle() -> None:
    mixed: dict[str, Any] = {"sampler_epoch": 0, "mixed": ("a",), "mixed_at": SHUFFLES}
    twice = [
        [
            loader(
                epoch(50.0, order=rank, **mixed),
                epoch(60.0, order=rank, **mixed),
                sampler=sampler(rank, length=64),
            )
        ]
        for rank in range(WORLD)
    ]
    assert lines(only(world(twice))) == [21, 20, 30]


@pytest.mark.parametrize(("batches", "codes"), [(9, ["DDP203"]), (8, [])])
def test_passes_that_are_left_after_as_many_batches_are_compared(
    batches: int, codes: list[str]
) -> None:
    found = [
        [
            loader(
                epoch(50.0, order=rank, sampler_epoch=0, ended=None, batches=9, steps=9),
                epoch(60.0, order=rank, sampler_epoch=0, ended=None, batches=batches, steps=8),
                sampler=sampler(rank, length=640),
            )
        ]
        for rank in range(WORLD)
    ]
    assert [finding.code for finding in said(world(found))] == codes


@pytest.mark.parametrize(("later", "codes"), [(0, ["DDP203"]), (7, [])])
def test_a_peek_between_two_passes_hides_nothing(later: int, codes: list[str]) -> None:
    peek = {"steps": 0, "batches": 1, "ended": None}
    found = [
        [
            loader(
                epoch(40.0, order=90 + rank, sampler_epoch=0, **peek),
                epoch(50.0, order=rank, sampler_epoch=0),
                epoch(60.0, order=80 + rank, sampler_epoch=later, **peek),
                epoch(70.0, order=later + rank, sampler_epoch=later),
                sampler=sampler(rank, length=64),
            )
        ]
        for rank in range(WORLD)
    ]
    assert [finding.code for finding in said(world(found))] == codes


@pytest.mark.parametrize(
    ("second", "shuffle"),
    [({"order": 99, "sampler_epoch": 1}, True), ({"order": 0, "sampler_epoch": 0}, False)],
    ids=["another order", "not shuffled"],
)
def test_epochs_that_differ_or_need_not_are_no_missing_set_epoch(
    second: Any, shuffle: bool
) -> None:
    found = [
        [
            loader(
                epoch(order=rank, sampler_epoch=0),
                epoch(60.0, **{**second, "order": second["order"] + rank}),
                sampler=sampler(rank, length=64, shuffle=shuffle),
            )
        ]
        for rank in range(WORLD)
    ]
    assert said(world(found)) == []


def passes(count: int) -> list[RankEvidence]:
    """Passes of one order after one call of set_epoch."""
    found = []
    for rank in range(WORLD):
        same = [epoch(50.0 + n, order=rank, sampler_epoch=0, told=1) for n in range(count)]
        found.append([loader(*same, sampler=sampler(rank, length=64))])
    return world(found)


def test_two_passes_in_one_epoch_may_be_meant() -> None:
    assert said(passes(2)) == []


def test_two_passes_in_each_of_many_epochs_are_meant() -> None:
    found = passes(4)
    for rank in found:
        for number, each in rank.loaders[0].epochs.items():
            each.sampler_epoch = (number - 1) // 2
            each.order = 10 * each.sampler_epoch + rank.rank
    assert said(found) == []


@pytest.mark.parametrize(("count", "codes"), [(3, ["DDP203"]), (2, [])])
def test_a_set_epoch_behind_the_pass_that_is_given_one_number_does_not_count(
    count: int, codes: list[str]
) -> None:
    ranks = passes(count)
    for rank in ranks:
        (known,) = rank.loaders
        known.epochs = {0: epoch(order=90 + rank.rank, sampler_epoch=7), **known.epochs}
    assert [each.code for each in said(ranks)] == codes


def test_a_set_epoch_that_is_called_once_before_the_loop_does_not_count() -> None:
    assert only(passes(3)).evidence == ("set_epoch was called 1 times, last for epoch 0",)


def test_seeds_that_differ_by_rank_make_shards_overlap() -> None:
    found = [[loader(epoch(order=r), sampler=sampler(r, seed=42 + r))] for r in range(WORLD)]
    finding = only(world(found))
    assert (finding.code, finding.severity) == ("DDP204", "error")
    assert "32%" in finding.cause
    assert finding.evidence == ("seeds by rank: 42, 43, 44, 45",)


def test_seeds_may_differ_where_each_rank_has_a_set_of_its_own() -> None:
    found = [
        [loader(epoch(order=r), sampler=sampler(r, seed=42 + r), identity=f"set {r}")]
        for r in range(WORLD)
    ]
    assert said(world(found)) == []


def split(train: list[tuple[int, ...]], held: dict[int, tuple[int, ...]]) -> list[RankEvidence]:
    found = shards()
    for rank, members in enumerate(train):
        found[rank][0] = replace(found[rank][0], members=members, members_place=SPLIT)
        if rank in held:
            evaluation = epoch(60.0, steps=0, graded=False)
            found[rank].append(
                loader(evaluation, members=held[rank], place=replace(LOADER, line=25))
            )
    return world(found)


def test_a_split_of_each_rank_leaks_validation_into_training() -> None:
    mine, others = (0, 1, 2, 3, 4, 5), (0, 1, 2, 3, 6, 7)
    finding = only(split([mine, others, others, others], {0: (6, 7)}))
    assert finding.code == "DDP206"
    assert lines(finding) == [19, 20, 25]
    assert "rank 1 trains on 100 % of the samples that rank 0 validates on" in finding.cause


def test_a_split_that_all_ranks_share_leaks_nothing() -> None:
    train, held = (0, 1, 2, 3, 4, 5), (6, 7)
    assert said(split([train] * WORLD, dict.fromkeys(range(WORLD), held))) == []


def test_a_look_at_the_shard_of_another_rank_is_no_leak() -> None:
    shards_of_ranks = [(4 * r, 4 * r + 1, 4 * r + 2, 4 * r + 3) for r in range(WORLD)]
    assert said(split(shards_of_ranks, {1: (0, 1)})) == []


def uneven(*, drawn: tuple[int, ...] = (5, 4, 4, 4)) -> list[RankEvidence]:
    """Rank 0 waits in the backward of its fifth batch, the others have had four and wait."""
    found = world(
        [
            [loader(epoch(batches=n, ended=None if n > 4 else 51.0), members_place=SPLIT)]
            for n in drawn
        ],
        ended=False,
    )
    for rank, batches in zip(found, drawn, strict=True):
        waiting(rank, 14, "all_reduce" if batches > 4 else "barrier", 33 if batches > 4 else 40)
    return found


def test_a_rank_that_ran_out_of_batches_explains_the_deadlock() -> None:
    finding = only(uneven())
    assert (finding.code, finding.certainty, finding.ranks) == ("DDP207", "proven", (1, 2, 3))
    assert lines(finding) == [19, 20, 30]
    assert len(finding.consequences) == 2


@pytest.mark.parametrize("each", [True, False])
def test_an_evaluation_needs_all_ranks_where_each_batch_is_gathered(each: bool) -> None:
    found = uneven()
    for rank in found:
        (one,) = rank.loaders
        (only_pass,) = one.epochs.values()
        rank.loaders = [
            replace(one, epochs={1: replace(only_pass, steps=0, graded=False)}),
        ]
        gathered = replace(TRAIN, line=33)
        rank.collectives += [
            Collective("0", n, "all_gather", only_pass.begun + n / 100, gathered)
            for n in range(1, only_pass.batches + 1 if each else 2)
        ]
    assert ("DDP207" in [finding.code for finding in said(found)]) == each


def test_a_deadlock_between_ranks_of_equal_batches_is_not_blamed_on_the_data() -> None:
    found = uneven(drawn=(4, 4, 4, 4))
    waiting(found[0], 14, "all_reduce", 33)
    assert "DDP207" not in [finding.code for finding in said(found)]


@pytest.mark.parametrize(
    ("drawn", "code"),
    [((5, 4, 4, 4), "DDP207"), ((4, 4, 4, 4), "DDP402"), ((4, 5, 5, 5), "DDP402")],
)
def test_a_rank_that_ran_out_of_batches_explains_that_its_next_call_met_a_step(
    drawn: tuple[int, ...], code: str
) -> None:
    """Only who ran out may be ahead: who has all its batches was ahead for another reason."""
    passes = [[loader(epoch(batches=n, ended=51.0))] for n in drawn]
    passes[0] = [loader(epoch(batches=drawn[0], ended=None))]
    found = world(passes, ended=False)
    for rank in found[1:]:
        rank.collectives.append(Collective("0", 9, "all_reduce", 51.1, TRAIN))
        rank.fate = Fate(rank.rank, rank.pid, None, signal.SIGABRT, 51.4)
    lost = "Read error [127.0.0.1]:1234: Connection reset by peer"
    at = replace(TRAIN, line=33)
    found[0].exceptions.append(ExceptionRecord("RuntimeError", lost, (at,), 51.3, at))
    finding = only(found)
    assert (finding.code, finding.certainty) == (code, "evidence")


def ordered(*alone: int, by: str = "random", content: str = "5", other: str = "5"):  # type: ignore[no-untyped-def]
    """A deadlock after two orders, between which some ranks have drawn for themselves."""
    found = world(ended=False)
    for rank in found:
        own = rank.rank in alone
        at = replace(TRAIN, line=61)
        numbers = content if rank.rank else other
        orders = [Reordered("random", numbers, f"{own * n}", n, TRAIN) for n in range(2)]
        draws = [Reordered(by, "9", "1", 0, replace(at, line=60))]  # by all
        draws += [Reordered(by, "9", "2", 0, at)] * own
        rank.of(Reordered).extend([orders[0], *draws, orders[1]])
        waiting(rank, 14, "barrier" if own else "all_reduce", 40 if own else 33)
    return found


def test_a_draw_of_some_ranks_alone_explains_that_orders_have_parted() -> None:
    finding = only(ordered(0))
    assert (finding.code, finding.certainty, finding.ranks) == ("DDP204", "evidence", (0,))
    assert lines(finding) == [61, TRAIN.line]
    assert len(finding.consequences) == 2


@pytest.mark.parametrize(
    "found",
    [
        ordered(0, by="torch"),  # from another generator
        ordered(0, other="4"),  # each has put something of its own in order
        ordered(0, content="", other=""),
        ordered(*range(WORLD)),  # so has each rank
    ],
)
def test_a_draw_from_what_orders_nothing_in_common_explains_nothing(
    found: list[RankEvidence],
) -> None:
    waiting(found[0], 14, "barrier", 40)
    waiting(found[1], 14, "all_reduce", 33)
    assert "DDP204" not in [each.code for each in said(found)]


def test_join_makes_uneven_batches_right() -> None:
    found = uneven()
    found[0].joins = 1
    assert "DDP207" not in [finding.code for finding in said(found)]


def interrupted(*, agreed: bool) -> list[RankEvidence]:
    found = world([[loader(epoch(ended=None), batches=9 - (r > 1))] for r in range(WORLD)])
    for rank in found:
        rank.fate = Fate(rank.rank, rank.pid, None, 2, 60.0)
        if agreed:
            rank.collectives.append(Collective("0", 1, "all_reduce", 40.0, TRAIN, reduce_op="MIN"))
    return found


def test_uneven_batches_are_foretold_of_a_job_that_was_interrupted_before() -> None:
    finding = only(interrupted(agreed=False))
    assert (finding.code, finding.certainty, finding.ranks) == ("DDP207", "evidence", (2, 3))
    assert "will run out" in finding.cause


def test_nothing_is_foretold_where_the_ranks_have_talked_before() -> None:
    assert said(interrupted(agreed=True)) == []


def evaluated(length: int, op: str = "all_reduce", **facts: Any) -> list[RankEvidence]:
    found = world(
        [
            [
                loader(
                    epoch(50.0, steps=0, graded=False),
                    sampler=sampler(rank, length=length, shuffle=False, **facts),
                )
            ]
            for rank in range(WORLD)
        ]
    )
    for rank in found:
        place = replace(TRAIN, line=44)
        rank.collectives.append(
            Collective("0", 9, op, 52.0, place, ((1,),), "float32", reduce_op="SUM")
        )
    return found


def test_a_metric_over_padded_shards_is_a_warning() -> None:
    finding = only(evaluated(37))
    assert (finding.code, finding.severity) == ("DDP208", "warning")
    assert "repeats 3 of 37 samples" in finding.cause
    assert lines(finding) == [21, 20, 30, 44]


@pytest.mark.parametrize(("rows", "told"), [(37, False), (36, True)])
def test_a_table_with_a_row_for_each_sample_has_none_twice(rows: int, told: bool) -> None:
    found = evaluated(37)
    for rank in found:
        rank.collectives[-1] = replace(rank.collectives[-1], shapes=((WORLD, rows, 3),))
    assert [each.code for each in said(found)] == ["DDP208"] * told


@pytest.mark.parametrize(
    ("length", "op", "facts"),
    [
        (36, "all_reduce", {}),
        (37, "all_gather", {}),
        (37, "all_reduce", {"drop_last": True}),
        (37, "all_reduce", {"type": "DistributedEvalSampler"}),
    ],
    ids=["even", "gathered", "drop_last", "another sampler"],
)
def test_exact_evaluation_gives_no_warning(length: int, op: str, facts: Any) -> None:
    assert said(evaluated(length, op, **facts)) == []


def test_samples_in_files_that_ranks_hand_over_may_have_had_their_surplus_cut_off() -> None:
    found = evaluated(37)
    for rank in found:
        path, place = f"/run/part{rank.rank}.pkl", replace(TRAIN, line=46)
        rank.files.append(FileEvent("save", path, 53.0, 53.1, place, by="pickle"))
    reads = [f"/run/part{rank.rank}.pkl" for rank in found]
    place = replace(TRAIN, line=48)
    found[0].files += [FileEvent("load", path, 54.0, 54.1, place, by="pickle") for path in reads]
    assert said(found) == []


def test_gathered_samples_may_have_had_their_surplus_cut_off() -> None:
    found = evaluated(37)
    for rank in found:
        rank.collectives.append(replace(rank.collectives[0], seq=10, op="all_gather"))
    assert said(found) == []


def shares(lengths: tuple[int, ...], **facts: Any) -> list[RankEvidence]:
    """Ranks that evaluate so many samples each, and reduce one number."""
    found = world([[loader(epoch(steps=0, graded=False), length=n)] for n in lengths])
    for rank in found:
        call = Collective("0", 9, "all_reduce", 52.0, replace(TRAIN, line=44), ((),), "float32")
        rank.collectives.append(replace(call, **{"reduce_op": "AVG", "content": "2a", **facts}))
    return found


def test_means_over_shares_of_unlike_size_are_not_to_be_averaged() -> None:
    finding = only(shares((40, 40, 40, 13)))
    assert (finding.code, finding.severity, lines(finding)) == ("DDP309", "warning", [44, 20, 30])
    summed = only(shares((40, 40, 40, 13), reduce_op="SUM"))
    assert (summed.code, summed.severity) == ("DDP309", "info")  # it may be a sum of sums


@pytest.mark.parametrize(("read", "severity"), [(0.25, "warning"), (1.0, "info")])
def test_a_sum_of_which_its_share_of_one_rank_is_read_was_one_of_means(
    read: float, severity: str
) -> None:
    found = shares((40, 40, 40, 13), reduce_op="SUM")
    for rank, given in zip(found, (0.1, 0.2, 0.3, 0.4), strict=True):
        rank.collectives = [replace(each, values=(given,)) for each in rank.collectives]
        rank.of(Read).append(Read(1, read.hex(), replace(TRAIN, line=46), 52.5))
    assert only(found).severity == severity


@pytest.mark.parametrize(("trained", "codes"), [(True, ["DDP309"]), (False, [])])
def test_gradients_may_be_switched_off_within_the_loop_that_evaluates(
    trained: bool, codes: list[str]
) -> None:
    found = shares((40, 40, 40, 13))
    for rank in found:
        (held,) = rank.loaders
        rank.loaders = [replace(held, epochs={1: epoch(steps=0, graded=True)})]
        if trained:
            dealt = sampler(rank.rank)
            rank.loaders.append(loader(epoch(40.0, order=rank.rank), sampler=dealt, plain=False))
    assert [each.code for each in said(found)] == codes


@pytest.mark.parametrize(
    ("lengths", "facts"),
    [
        ((40, 40, 40, 39), {}),
        ((40, 40, 40, 13), {"content": ""}),
        ((40, 40, 40, 13), {"shapes": ((2,),)}),
        ((40, 40, 40, 13), {"reduce_op": "MAX"}),
    ],
    ids=["alike", "a count", "sum and count", "the worst"],
)
def test_what_may_be_averaged_or_is_weighed_is_left_alone(
    lengths: tuple[int, ...], facts: Any
) -> None:
    assert said(shares(lengths, **facts)) == []


@pytest.mark.parametrize("graph", [True, False])
def test_what_has_a_graph_and_is_gathered_is_noted(graph: bool) -> None:
    found = world()
    for rank in found:
        call = Collective("0", 3, "all_gather", 52.0, replace(TRAIN, line=44), graph=graph)
        rank.collectives += [call, replace(call, seq=4)]
    told = [(each.code, each.severity, lines(each)) for each in said(found)]
    assert told == [("DDP316", "info", [44])] * graph


def test_lists_of_files_in_different_orders_are_named_with_the_rank() -> None:
    found = shards(listings={"files": ("sorted", "these")})
    found[2][0] = replace(found[2][0], listings={"files": ("by time", "these")})
    finding = only(world(found))
    assert (finding.code, finding.ranks) == ("DDP213", (2,))
    assert "Images.files" in finding.cause


def test_lists_of_other_files_are_no_matter_of_order() -> None:
    found = shards(listings={"files": ("sorted", "these")})
    found[2][0] = replace(found[2][0], listings={"files": ("sorted, too", "others")})
    assert said(world(found)) == []


def stream(*content: tuple[str, ...], workers: int = 0) -> list[RankEvidence]:
    return world(
        [
            [loader(epoch(content=each), iterable=True, length=None, workers=workers)]
            for each in content
        ]
    )


@pytest.mark.parametrize(
    ("content", "workers", "reader"),
    [
        ([("a", "b")] * WORLD, 0, "every rank the"),
        ([("a", "a", "b"), ("c", "c", "d"), ("e", "e", "f"), ("g", "g", "h")], 2, "every worker"),
    ],
)
def test_a_stream_that_several_read_is_named(content: Any, workers: int, reader: str) -> None:
    finding = only(stream(*content, workers=workers))
    assert finding.code == "DDP215"
    assert reader in finding.cause


@pytest.mark.parametrize(
    "content",
    [[("a", "b"), ("c", "d"), ("e", "f"), ("g", "h")], [("a", "a")] * WORLD, [("", "b")] * WORLD],
    ids=["shards", "the same thing all over", "cannot be read"],
)
def test_streams_that_are_dealt_out_or_say_nothing_are_left_alone(content: Any) -> None:
    assert said(stream(*content)) == []


def meant(by_rank: dict[int, tuple[str, ...]], *, epochs: int = 2) -> list[RankEvidence]:
    """Ranks that have seen indices 0 to 3 in each of two epochs, with parts as each has them."""
    found = world(shards())
    for rank in found:
        for number in range(1, epochs + 1):
            parts = by_rank[rank.rank]
            samples = {n: tuple(f"{part}{n}" for part in parts) for n in range(4)}
            rank.of(Meant).append(Meant(0, number, samples))
    return found


def test_an_index_that_means_other_samples_is_proven_by_what_came_of_it() -> None:
    finding = only(meant({rank: (f"image of {rank} ",) for rank in range(WORLD)}))
    assert (finding.code, finding.certainty) == ("DDP217", "proven")


def parts(*, apart: bool, identity: str = "one set") -> list[RankEvidence]:
    """Ranks whose sampler deals out a part that each has chosen of one set; nothing is held out."""
    found = shards()
    for rank, (each,) in enumerate(found):
        chosen = tuple(n for n in range(20) if n % 5 != (rank if apart else 0))
        found[rank] = [replace(each, members=chosen, members_place=SPLIT, identity=identity)]
    return world(found)


def test_a_part_that_each_rank_has_chosen_for_itself_is_dealt_out_to_no_purpose() -> None:
    finding = only(parts(apart=True))
    assert (finding.code, finding.certainty) == ("DDP217", "evidence")
    assert "another part" in finding.cause


@pytest.mark.parametrize(("apart", "identity"), [(False, "one set"), (True, "")])
def test_one_part_or_a_set_that_is_not_known_is_none(apart: bool, identity: str) -> None:
    assert said(parts(apart=apart, identity=identity)) == []


def test_where_another_part_of_the_samples_is_alike_nothing_is_proven() -> None:
    finding = only(meant({rank: (f"augmented by {rank} ", "label ") for rank in range(WORLD)}))
    assert (finding.code, finding.certainty) == ("DDP217", "evidence")


def test_a_sampler_of_some_ranks_says_nothing_of_the_sets_of_the_others() -> None:
    loaders = [
        [loader(sampler=sampler(rank % 2, num_replicas=2), length=16 + rank // 2)]
        for rank in range(WORLD)
    ]
    assert [each.code for each in said(world(loaders)) if each.code == "DDP217"] == []
