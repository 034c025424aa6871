"""Replicas that part are told with the reason, the line and the interval; what may part is not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from ddpdoctor.catalog import Finding
from ddpdoctor.diagnose import diagnose
from ddpdoctor.evidence import (
    Collective,
    Evidence,
    ExceptionRecord,
    Fate,
    FileEvent,
    Group,
    ModelCopy,
    Place,
    Plateau,
    RankEvidence,
    Sample,
    Seed,
    StateLoad,
    Training,
    Wrapper,
)
from ddpdoctor.evidence.events.draws import Draw
from ddpdoctor.evidence.events.evaluated import Evaluated
from ddpdoctor.evidence.events.layout import Layout

WORLD = 3
NAMES = ("body.weight", "head.weight")
STEPS = (1, 2, 4, 8)
WRAPPED = Place("/home/user/train.py", 20, "main")


def at(line: int) -> Place:
    return replace(WRAPPED, line=line)


def sample(rank: int, step: int, *, apart_from: int = 99, **more: Any) -> Sample:
    """Equal on all ranks before step `apart_from`; from there each rank has its own."""
    here = f"{rank}" if step >= apart_from else "all"
    after = f"{rank}" if step > apart_from else "all"
    fields: dict[str, Any] = {
        "parameters": dict.fromkeys(NAMES, f"{step}-{after}"),
        "gradients": dict.fromkeys(NAMES, f"{step}-{here}"),
        "rates": (0.1,),
        "reductions": step,
        "wrapper": 0,
    }
    return Sample(optimizer=0, step=step, **{**fields, **more})


def ranks(windows: Mapping[str, int] | None = None, *, apart_from: int = 99) -> list[RankEvidence]:
    """Three ranks that have trained one model, with the windows of all of them."""
    group = Group("0", tuple(range(WORLD)), "gloo", 1800.0, None)
    found = []
    for number in range(WORLD):
        rank = RankEvidence(number, WORLD, 100 + number, groups={"0": group})
        rank.fate = Fate(number, rank.pid, 0, None, 60.0)
        rank.wrappers = [
            Wrapper(
                WRAPPED,
                NAMES,
                find_unused=False,
                static_graph=False,
                ranks=tuple(range(WORLD)),
                sizes=(100, 10),
            )
        ]
        lines = {
            "step": at(40),
            "forward": at(30),
            "backward": at(35),
            "bypass": at(31),
            "grad": at(32),
            "held forward": at(33),
            "clip": at(36),
        }
        rank.training[0, 0] = Training(0, 0, 8, windows or {"s": 8}, 8, places=lines)
        rank.samples = [sample(number, step, apart_from=apart_from) for step in STEPS]
        found.append(rank)
    return found


def train(found: list[RankEvidence], **changes: Any) -> None:
    """Change what is known of the training on every rank."""
    for rank in found:
        rank.training[0, 0] = replace(rank.training[0, 0], **changes)


def wrap(found: list[RankEvidence], **changes: Any) -> None:
    for rank in found:
        rank.wrappers = [replace(rank.wrappers[0], **changes)]


def said(found: list[RankEvidence]) -> list[Finding]:
    return diagnose(Evidence(len(found), found))


def only(found: list[RankEvidence]) -> Finding:
    (finding,) = said(found)
    return finding


def lines(finding: Finding) -> list[int]:
    return [each.place.line for each in finding.places if each.place is not None]


def test_replicas_that_stay_equal_give_no_finding() -> None:
    assert said(ranks()) == []


def test_a_divergence_without_a_reason_is_told_with_names_and_interval() -> None:
    finding = only(ranks(apart_from=4))
    assert (finding.code, finding.ranks, finding.severity) == ("DDP300", (0, 1, 2), "error")
    assert "body.weight, head.weight" in finding.cause
    assert "between steps 2 and 4" in finding.evidence[0]
    assert lines(finding)[0] == 40


@pytest.mark.parametrize(("taken", "certainty"), [(7, "proven"), (5, "evidence")])
def test_that_weights_were_put_there_for_an_evaluation_is_seen_before_the_next_step(
    taken: int, certainty: str
) -> None:
    """An average that is taken now and then may happen to be at the steps that are looked at."""
    found = ranks()
    for rank in found:
        held = {name: f"{name} {rank.rank}" for name in NAMES}
        rank.of(Evaluated).append(Evaluated(0, taken, held, at(60)))
    finding = only(found)
    assert (finding.code, finding.certainty, lines(finding)[0]) == ("DDP300", certainty, 60)


def test_the_rank_that_differs_alone_is_told_apart() -> None:
    found = ranks()
    found[2].samples = [sample(2, step, apart_from=4) for step in STEPS]
    assert "equal among themselves: ranks 0, 1; rank 2" in only(found).evidence


@pytest.mark.parametrize(
    ("windows", "code", "line"),
    [
        ({"": 8}, "DDP303", 31),
        ({"a": 8}, "DDP313", 32),
        ({"aaa": 8}, "DDP313", 32),
        ({"nnn": 8}, "DDP315", 40),
        ({"nns": 7, "nn": 1}, "DDP315", 40),
        ({"snn": 8}, "DDP315", 40),
    ],
)
def test_windows_tell_why_gradients_were_not_reduced(
    windows: dict[str, int], code: str, line: int
) -> None:
    finding = only(ranks(windows, apart_from=1))
    assert (finding.code, lines(finding)[0]) == (code, line)
    assert lines(finding)[-1] == WRAPPED.line
    assert said(ranks(windows)) == []


def test_a_backward_outside_of_no_sync_is_the_reason_for_held_gradients() -> None:
    found = ranks({"n": 8}, apart_from=1)
    train(found, late_backward=True, places={"late backward": at(37)})
    finding = only(found)
    assert (finding.code, lines(finding)[0]) == ("DDP314", 37)


def test_an_optimizer_that_shares_a_backward_with_another_has_not_gone_past_the_wrapper() -> None:
    found = ranks({"": 8}, apart_from=1)
    for rank in found:
        rank.training[0, 1] = Training(0, 1, 8, {"s": 8}, 8)
    assert only(found).code == "DDP300"


def tried_out_by_one(*, apart_from: int = 99) -> list[RankEvidence]:
    """Rank 0 has made an optimizer more than the others, and has stepped it by itself before."""
    found = ranks(apart_from=apart_from)
    first = found[0]
    training = first.training[0, 0]
    trial = replace(training, places={**training.places, "step": at(12)}, windows={"": 8})
    first.training = {(0, 0): trial, (0, 1): replace(training, optimizer=1)}
    alone = [sample(0, step, apart_from=1, rates=(1e-4,)) for step in STEPS]
    first.samples = [*alone, *(replace(each, optimizer=1) for each in first.samples)]
    return found


def test_what_one_rank_tries_with_an_optimizer_of_its_own_is_no_replica_of_the_others() -> None:
    assert said(tried_out_by_one()) == []


def test_ranks_that_train_with_the_same_line_are_compared_where_one_has_another_optimizer() -> None:
    finding = only(tried_out_by_one(apart_from=4))
    assert finding.code == "DDP300"
    assert "between steps 2 and 4" in " ".join(finding.evidence)
    assert lines(finding)[0] == 40


def test_late_parameters_are_named_where_they_alone_differ() -> None:
    found = ranks()
    for rank in found:
        rank.samples = [
            replace(
                each,
                gradients={"body.weight": "same", "new.weight": f"{rank.rank}"},
                parameters={**each.parameters, "new.weight": f"{rank.rank}"},
                late=("new.weight",),
            )
            for each in rank.samples
        ]
    train(found, places={"added": at(25), "step": at(40)})
    finding = only(found)
    assert (finding.code, lines(finding)[0]) == ("DDP305", 25)
    assert "new.weight" in finding.cause
    assert "body.weight" not in finding.cause


def test_a_model_in_memory_that_all_share_parts_by_nothing_else() -> None:
    found = ranks(apart_from=1)
    for rank in found:
        rank.of(Layout).append(Layout(0, (), (), (), "one memory"))
    assert only(found).code == "DDP320"


def test_the_rank_that_skipped_a_step_is_the_culprit() -> None:
    found = ranks(apart_from=4)
    found[1].samples = [replace(s, reductions=s.step + 1) for s in found[1].samples]
    finding = only(found)
    assert (finding.code, finding.ranks, lines(finding)[0]) == ("DDP307", (1,), 40)
    assert "rank 0 4, rank 1 5, rank 2 4" in finding.cause


@pytest.mark.parametrize(("passes", "steps", "told"), [("nans", 7, True), ("ns", 7, False)])
def test_a_rank_that_left_passes_and_has_made_fewer_steps_has_skipped_them(
    passes: str, steps: int, told: bool
) -> None:
    found = ranks({"ns": 8}, apart_from=4)
    windows = {"ns": steps - 1, passes: 1} if told else {"ns": steps}
    found[1].training[0, 0] = replace(found[1].training[0, 0], windows=windows, steps=steps)
    finding = only(found)
    assert finding.code == ("DDP307" if told else "DDP300")
    if told:
        assert (finding.ranks, finding.certainty, lines(finding)[0]) == ((1,), "evidence", 40)
        assert "rank 0 0 and 8; rank 1 1 and 7" in finding.cause


@pytest.mark.parametrize(("passes", "code"), [((9, 9, 9), "DDP307"), ((9, 8, 9), "DDP300")])
def test_a_rank_that_steps_less_often_after_as_many_backward_passes_has_skipped(
    passes: tuple[int, ...], code: str
) -> None:
    found = ranks(apart_from=4)
    for rank, reductions, steps in zip(found, passes, (9, 8, 9), strict=True):
        rank.training[0, 0] = replace(rank.training[0, 0], reductions=reductions, steps=steps)
        rank.samples = [replace(s, gradients={NAMES[0]: f"{s.step}"}) for s in rank.samples]
    finding = only(found)
    assert finding.code == code
    if code == "DDP307":
        assert (finding.ranks, finding.certainty, lines(finding)[0]) == ((1,), "proven", 40)
        assert "rank 0 9, rank 1 8, rank 2 9" in finding.cause


def test_learning_rates_that_part_are_laid_to_the_metric_of_a_plateau() -> None:
    def parted() -> list[RankEvidence]:
        found = ranks()
        for rank in found:
            rank.samples = [
                replace(s, rates=(0.1 * (rank.rank + 1),), parameters={"w": f"{rank.rank}"})
                if s.step > 2
                else s
                for s in rank.samples
            ]
        return found

    finding = only(parted())
    assert finding.code == "DDP300"
    assert "learning rates differ" in finding.cause
    found = parted()
    for rank in found:
        rank.plateaus = [Plateau(1, 0.5, at(50)), Plateau(2, float(rank.rank), at(51))]
    finding = only(found)
    assert (finding.code, lines(finding)[0]) == ("DDP216", 51)


def test_parameters_that_differ_before_the_first_step_were_changed_after_the_wrap() -> None:
    found = ranks()
    for rank in found:
        rank.samples = [replace(s, parameters={"w": f"{rank.rank}"}) for s in rank.samples]
    assert "before the first step" in only(found).cause
    load = FileEvent("load", "/x.pt", 1.0, 2.0, at(5))
    found[0].files.append(load)
    assert [finding.code for finding in said(found) if finding.code == "DDP300"] == []


def hook(found: list[RankEvidence]) -> None:
    train(found, kept_out="comm hook powerSGD")


def join(found: list[RankEvidence]) -> None:
    train(found, kept_out="Join")


def average(found: list[RankEvidence]) -> None:
    for rank in found:
        rank.collectives.append(
            Collective("0", 1, "allreduce", 5.0, at(60), shapes=((10, 10),), dtype="float")
        )


def heal(found: list[RankEvidence]) -> None:
    for rank in found:
        rank.samples.append(sample(rank.rank, 16))


def crash(found: list[RankEvidence]) -> None:
    error = ExceptionRecord("ValueError", "bad", (at(70),), 50.0, at(70))
    found[0].exceptions.append(error)


def shard(found: list[RankEvidence]) -> None:
    for rank in found:
        rank.wrappers = [replace(rank.wrappers[0], ranks=(rank.rank,))]


@pytest.mark.parametrize("innocent", [hook, join, average, heal, shard])
def test_what_may_differ_or_is_made_up_for_is_not_told(
    innocent: Callable[[list[RankEvidence]], None],
) -> None:
    found = ranks(apart_from=1)
    innocent(found)
    assert said(found) == []


def test_what_is_silent_is_not_told_beside_a_crash() -> None:
    found = ranks({"": 8}, apart_from=1)
    crash(found)
    assert only(found).code == "DDP400"


def test_a_run_that_was_ended_with_ctrl_c_is_judged_as_far_as_it_went() -> None:
    found = ranks({"": 8}, apart_from=1)
    for rank in found:
        rank.exceptions.append(ExceptionRecord("KeyboardInterrupt", "", (), 50.0, at(70)))
        rank.fate = Fate(rank.rank, rank.pid, None, 2, 60.0)
    assert "DDP303" in [finding.code for finding in said(found)]


def outside(found: list[RankEvidence], *, equal_at_first: bool, optimizer: int = 1) -> None:
    for rank in found:
        for step in STEPS:
            own = f"{rank.rank}" if step > 1 or not equal_at_first else "all"
            seen = {"Critic.weight": f"{step}-{own}"}
            rank.samples.append(Sample(optimizer, step, seen, place=at(45)))


def test_parameters_that_are_trained_beside_the_wrapper_are_named() -> None:
    found = ranks()
    outside(found, equal_at_first=True)
    finding = only(found)
    assert (finding.code, finding.certainty, lines(finding)) == ("DDP300", "evidence", [45])
    assert "Critic.weight" in finding.cause


def test_what_one_optimizer_steps_with_the_wrapper_may_not_differ_from_the_start_either() -> None:
    found = ranks()
    outside(found, equal_at_first=False, optimizer=0)
    finding = only(found)
    assert (finding.code, finding.severity, lines(finding)) == ("DDP300", "warning", [45, 20])
    assert "different from the first step on" in finding.cause
    found[0].collectives.append(Collective("0", 1, "allgather", 5.0, at(60)))
    assert said(found) == []


def test_parameters_that_may_be_shards_are_not_compared() -> None:
    found = ranks()
    outside(found, equal_at_first=False)
    assert said(found) == []
    found = ranks()
    outside(found, equal_at_first=True)
    found[0].collectives.append(Collective("0", 1, "allgather", 5.0, at(60)))
    assert said(found) == []


def test_a_copy_from_before_the_wrap_that_differs_is_told_with_its_line() -> None:
    found = ranks()
    for rank in found:
        rank.copies = [ModelCopy(0, (at(15), at(18)), {"w": f"{rank.rank}"})]
    finding = only(found)
    assert (finding.code, lines(finding)) == ("DDP506", [15, 18])
    for rank in found:
        rank.copies = [ModelCopy(0, (at(15), at(18)), {"w": "all"})]
    assert said(found) == []


def test_clipping_before_the_reduction_is_told_where_the_step_itself_is_right() -> None:
    found = ranks({"nns": 8})
    train(found, clipped_early=16)
    finding = only(found)
    assert (finding.code, lines(finding)) == ("DDP306", [36])
    found = ranks({"nnn": 8}, apart_from=1)
    train(found, clipped_early=8)
    assert only(found).code == "DDP315"


def test_clipping_scaled_gradients_is_told() -> None:
    found = ranks()
    train(found, clipped_scaled=8)
    finding = only(found)
    assert finding.code == "DDP306"
    assert "unscale_" in finding.cure.text


def noisy(found: list[RankEvidence], state: Callable[[int, int], str]) -> list[RankEvidence]:
    for rank in found:
        rank.seeds = [Seed(0, at(10))]
        rank.samples = [replace(s, noise=state(rank.rank, s.step)) for s in rank.samples]
    return found


def test_equal_random_states_before_dropout_are_told_with_the_seed() -> None:
    finding = only(noisy(ranks(), lambda _, step: f"{step}"))
    assert (finding.code, finding.severity, lines(finding)[0]) == ("DDP205", "info", 10)


@pytest.mark.parametrize(
    "state",
    [
        lambda rank, step: f"{rank}-{step}",
        lambda rank, step: "" if rank >= 0 else f"{step}",
        lambda rank, step: "never moves",
        lambda rank, step: f"{rank}" if step == 8 else f"{step}",
    ],
)
def test_random_states_that_differ_or_are_not_used_are_not_told(
    state: Callable[[int, int], str],
) -> None:
    assert said(noisy(ranks(), state)) == []


def drawn(replicas: int) -> list[RankEvidence]:
    """Ranks that draw noise for their samples from one state, in groups of so many replicas."""
    found = ranks()
    wrap(found, ranks=tuple(range(replicas)))
    for rank in found:
        for step in (2, 4):
            draw = Draw(step, 0, 8, at(28), "randn_like", (8, 3), f"cpu {step}", inside=False)
            rank.of(Draw).append(draw)
    return found


def test_noise_that_is_drawn_from_one_state_on_all_ranks_is_told_with_its_line() -> None:
    finding = only(drawn(WORLD))
    assert (finding.code, finding.severity, lines(finding)) == ("DDP205", "warning", [28])


def test_ranks_that_do_not_train_one_model_all_together_may_draw_alike() -> None:
    assert said(drawn(WORLD - 1)) == []


def test_ranks_that_hand_each_other_their_edges_in_each_step_may_draw_alike() -> None:
    found = drawn(WORLD)
    found[1].records[Draw] = [replace(draw, exchanged=2 * 8) for draw in found[1].of(Draw)]
    assert said(found) == []
    found[1].records[Draw] = [replace(draw, exchanged=1) for draw in found[1].of(Draw)]
    assert only(found).severity == "warning"  # a loss that is gathered at each step


def test_noise_that_is_used_up_before_the_model_has_its_samples_is_information() -> None:
    found = drawn(WORLD)
    for rank in found:
        rank.records[Draw] = [replace(draw, kept=False) for draw in rank.of(Draw)]
    assert only(found).severity == "info"
    assert not only(found).is_suspicion


def test_uniform_numbers_within_the_model_may_be_masks_and_are_a_suspicion() -> None:
    found = drawn(WORLD)
    for rank in found:
        rank.records[Draw] = [replace(d, inside=True, by="rand_like") for d in rank.of(Draw)]
    assert (only(found).severity, only(found).is_suspicion) == ("info", True)


def test_micro_batches_that_all_synchronise_are_told() -> None:
    found = ranks({"ssss": 8})
    train(found, repeats=(4, 4, 4))
    finding = only(found)
    assert (finding.code, finding.severity, lines(finding)[0]) == ("DDP304", "warning", 35)


@pytest.mark.parametrize("reason", ["comm hook Engine.hook", "Join", "python reducer"])
def test_a_hook_that_sends_after_each_micro_batch_is_told_by_evidence(reason: str) -> None:
    found = ranks({"ssss": 8})
    train(found, repeats=(4, 4, 4), kept_out=reason)
    told = [(each.code, each.certainty) for each in said(found)]
    assert told == ([("DDP304", "evidence")] if reason.startswith("comm hook") else [])


@pytest.mark.parametrize("repeats", [(1, 1, 1), (4, 1, 4), (4,), ()])
def test_passes_of_different_lines_or_of_few_steps_are_not_called_accumulation(
    repeats: tuple[int, ...],
) -> None:
    found = ranks({"ss": 8})
    train(found, repeats=repeats)
    assert said(found) == []


@pytest.mark.parametrize("repeats", [(4, 4), (1, 1)])
def test_no_sync_around_backward_alone_is_told_as_such(repeats: tuple[int, ...]) -> None:
    found = ranks({"ssss": 8})
    train(found, repeats=repeats, places={"held backward": at(38), "forward": at(30)})
    finding = only(found)
    assert (finding.code, lines(finding)[0]) == ("DDP314", 38)


def test_a_search_for_unused_parameters_that_never_finds_any_is_told() -> None:
    found = ranks()
    # A gradient that is thrown away before the step was computed and reduced.
    wrap(found, find_unused=True, without_gradient=("head.weight",))
    train(found, always_used=True)
    finding = only(found)
    assert (finding.code, lines(finding)) == ("DDP302", [20])


@pytest.mark.parametrize(
    "changes", [{"always_used": False}, {"always_used": None}, {"always_used": True, "steps": 5}]
)
def test_a_search_that_found_some_or_saw_little_is_not_called_needless(
    changes: dict[str, Any],
) -> None:
    found = ranks()
    wrap(found, find_unused=True)
    train(found, **changes)
    assert said(found) == []


def test_graphs_of_past_steps_that_are_all_alive_are_told() -> None:
    found = ranks()
    train(found, graphs_kept=3)
    finding = only(found)
    assert (finding.code, finding.severity, lines(finding)) == ("DDP601", "warning", [35, 30])
    found[1].training[0, 0] = replace(found[1].training[0, 0], graphs_kept=2)
    assert said(found) == []


UNUSED = (
    "Expected to have finished reduction in the prior iteration before starting a new one. "
    "Parameter indices which did not receive grad for rank 0: 1"
)


def test_parameters_that_were_replaced_are_the_reason_why_ddp_waits_for_the_old_ones() -> None:
    def crashed(late: tuple[str, ...]) -> list[RankEvidence]:
        found = ranks()
        train(found, places={"added": at(25)})
        for rank in found:
            rank.samples = [replace(sample(rank.rank, 1), late=late)]
            rank.exceptions.append(ExceptionRecord("RuntimeError", UNUSED, (at(30),), 50.0, at(30)))
            rank.fate = Fate(rank.rank, rank.pid, 1, None, 60.0)
        return found

    finding = only(crashed(("head.weight",)))
    assert (finding.code, lines(finding)) == ("DDP305", [25, 30])
    assert "head.weight" in finding.cause
    assert only(crashed(())).code == "DDP301"


def crashed_at_the_end(*, apart_from: int) -> list[RankEvidence]:
    """The ranks have parted, and one of them raises something else later."""
    three = ranks({"": 8}, apart_from=apart_from)
    for rank in three:
        rank.steps, rank.fate = 8, Fate(rank.rank, rank.pid, 1, None, 60.0)
        error = ExceptionRecord("KeyError", "'label'", (at(50),), 59.0, at(50))
        rank.exceptions = [error] if rank.rank == 0 else []
    return three


def test_a_silent_error_from_long_before_is_told_below_the_crash() -> None:
    found = diagnose(Evidence(WORLD, crashed_at_the_end(apart_from=2)))
    assert [each.code for each in found] == ["DDP400", "DDP303"]


def test_a_difference_that_came_with_the_crash_is_not_told_beside_it() -> None:
    found = diagnose(Evidence(WORLD, crashed_at_the_end(apart_from=8)))
    assert [each.code for each in found] == ["DDP400"]


def apart_by(share: float) -> list[RankEvidence]:
    three = ranks(apart_from=4)
    for rank in three:
        rank.samples = [
            replace(each, few=dict.fromkeys(NAMES, (1.0, 1.0 + share * rank.rank / 2)))
            for each in rank.samples
        ]
    return three


@pytest.mark.parametrize(("share", "severity"), [(4e-7, "warning"), (3e-3, "error")])
def test_a_difference_of_rounding_is_told_as_such_with_its_size(
    share: float, severity: str
) -> None:
    (finding,) = diagnose(Evidence(WORLD, apart_by(share)))
    assert (finding.code, finding.severity) == ("DDP300", severity)
    assert ("rounding" in finding.cause) == (severity == "warning")
    assert f"{share:.1g}" in finding.evidence[0]


def test_rates_that_differed_at_a_step_that_was_not_looked_at_are_told() -> None:
    three = ranks(apart_from=3)
    for rank in three:
        rank.samples = [
            replace(each, gradients={}, rates_so_far=f"{rank.rank if each.step > 2 else 'all'}")
            for each in rank.samples
        ]
    (finding,) = diagnose(Evidence(WORLD, three))
    assert (
        "learning rates differed between ranks at some step between steps 2 and 4" in finding.cause
    )


def test_ranks_that_alone_restored_an_optimizer_are_named_where_all_have_read_the_file() -> None:
    three = ranks(apart_from=2)
    for rank in three:
        read = FileEvent("load", "/data/last.pt", 12.0, 13.0, at(40))
        rank.files.append(read)
        rank.state_loads.append(StateLoad(14.0, "module", "Net", True, 2, 0, 0, False, at(41)))
    three[0].state_loads.append(StateLoad(15.0, "optimizer", "Adam", True, 0, 0, 0, False, at(43)))
    finding = only(three)
    assert (finding.code, finding.ranks) == ("DDP513", (0,))
    assert [each.place for each in finding.places] == [at(43)]


def test_data_that_a_rank_reads_more_of_is_no_state_that_it_restored() -> None:
    three = timed(ranks(apart_from=2))
    for rank in three:
        for number in range(4):
            file = f"/data/{rank.rank}-{number}.npy"
            rank.files.append(FileEvent("load", file, 12.0, 13.0, at(40), by="numpy"))
    for number in range(4):  # the evaluation of rank 0, before and after
        for begun in (15.0, 95.0):
            file = f"/data/val-{number}.npy"
            three[0].files.append(FileEvent("load", file, begun, begun, at(40), by="numpy"))
    assert only(three).code == "DDP300"
    # A state that is read after they had parted is no reason either.
    three[0].files.append(FileEvent("load", "/data/best.pt", 95.0, 95.0, at(44)))
    three[0].state_loads.append(StateLoad(96.0, "module", "Net", True, 2, 0, 0, False, at(45)))
    assert only(three).code == "DDP300"


@pytest.mark.parametrize(("written", "code"), [("/data/corpus.pt", "DDP300"), ("/x", "DDP513")])
def test_what_a_rank_reads_that_another_has_just_made_is_held_by_both(
    written: str, code: str
) -> None:
    """As a corpus that rank 0 builds, and keeps in a file for the others."""
    three = timed(ranks(apart_from=2))
    three[0].files.append(FileEvent("save", written, 2.0, 3.0, at(40)))
    for rank in three[1:]:
        rank.files.append(FileEvent("load", "/data/corpus.pt", 4.0, 5.0, at(44)))
    assert only(three).code == code


@pytest.mark.parametrize(("taken", "codes"), [(8, []), (5, ["DDP513"])])
def test_what_a_rank_loads_after_the_last_step_parts_no_replicas(
    taken: int, codes: list[str]
) -> None:
    """As rank 0 does to evaluate the best of them at the end."""
    three = timed(ranks())
    for rank in three:
        held = dict.fromkeys(NAMES, "best" if rank.rank == 0 else "last")
        rank.samples.append(sample(rank.rank, 9, parameters=held, gradients={}, time=95.0))
    load = StateLoad(92.0, "module", "Net", True, 2, 0, 0, False, at(44))
    three[0].state_loads.append(replace(load, wrapper=0, changed=True, step=taken))
    assert [each.code for each in said(three)] == codes


def test_what_one_rank_has_read_for_all_is_restored_by_all() -> None:
    three = timed(ranks(apart_from=2))
    three[0].files.append(FileEvent("load", "/data/last.pt", 12.0, 13.0, at(40)))
    assert (only(three).code, only(three).certainty) == ("DDP513", "evidence")
    assert "only rank 0 read a checkpoint" in only(three).cause
    for rank in three:
        rank.state_loads.append(StateLoad(14.0, "module", "Net", True, 2, 0, 0, False, at(41)))
    assert only(three).code == "DDP300"
    # A copy, for the evaluation that rank 0 does, is no state of the training.
    three[0].state_loads.append(StateLoad(15.0, "module", "Net", True, 2, 0, 0, False, at(44)))
    assert only(three).code == "DDP300"
    three[0].files.append(FileEvent("load", "/data/best.pt", 16.0, 17.0, at(50)))
    three[0].state_loads.append(StateLoad(18.0, "module", "Net", True, 2, 0, 0, False, at(51)))
    assert (only(three).code, only(three).certainty) == ("DDP513", "proven")
    assert only(three).place == at(50)


def test_samples_that_all_ranks_read_are_not_what_one_has_restored() -> None:
    """They may lie in files as a checkpoint does, and come after it."""
    three = timed(ranks(apart_from=2))
    three[0].files.append(FileEvent("load", "/data/last.pt", 6.0, 6.5, at(50)))
    three[0].state_loads.append(StateLoad(7.0, "module", "Net", True, 2, 0, 0, False, at(51)))
    for rank in three:
        rank.files.append(FileEvent("load", f"/data/{rank.rank}.pt", 8.0, 8.1, at(60)))
        rank.samples = [replace(each, rates=(0.1 / (1 + rank.rank),)) for each in rank.samples]
    finding = only(three)
    assert (finding.code, finding.ranks, lines(finding)[:2]) == ("DDP513", (0,), [50, 51])
    assert "learning rates differ: rank 0 0.1, rank 1 0.05" in finding.cause


def loaded(rank: int, *, alike: bool, time: float = 25.0) -> StateLoad:
    content = "average" if alike else f"average of {rank}"
    return StateLoad(time, "wrapper", "DDP", True, 2, 0, 0, False, at(45), content)


def timed(found: list[RankEvidence]) -> list[RankEvidence]:
    for rank in found:
        rank.samples = [replace(each, time=10.0 * each.step) for each in rank.samples]
    return found


def test_what_was_loaded_unlike_between_two_steps_is_the_reason_and_is_proven() -> None:
    three = timed(ranks(apart_from=4))
    for rank in three:
        rank.state_loads.append(loaded(rank.rank, alike=False))
    finding = only(three)
    assert (finding.code, finding.certainty, lines(finding)[0]) == ("DDP513", "proven", 45)


def test_what_was_read_too_early_is_told_once() -> None:
    three = timed(ranks(apart_from=4))
    for rank in three:
        begun = 24.0 if rank.rank else 25.0
        rank.files.append(FileEvent("load", "/data/best.pt", begun, begun + 0.1, at(44)))
        rank.state_loads.append(loaded(rank.rank, alike=False, time=26.0))
    three[0].files.insert(0, FileEvent("save", "/data/best.pt", 24.1, 24.9, at(40)))
    assert only(three).code == "DDP501"
    for rank in three:  # of something else, and not since the weights were equal
        rank.files = [replace(f, begun=f.begun - 20, ended=f.begun - 19.9) for f in rank.files]
    assert [each.code for each in said(three)] == ["DDP501", "DDP513"]


@pytest.mark.parametrize(("alike", "time"), [(True, 25.0), (False, 5.0), (False, 45.0)])
def test_what_was_loaded_alike_or_at_another_time_is_not_the_reason(
    alike: bool, time: float
) -> None:
    three = timed(ranks(apart_from=4))
    for rank in three:
        rank.state_loads.append(loaded(rank.rank, alike=alike, time=time))
    assert only(three).code == "DDP300"


def changed(time: float, *, changed: bool = True) -> StateLoad:
    return StateLoad(
        time, "module", "Net", True, 2, 0, 0, False, at(46), "best", wrapper=0, changed=changed
    )


def test_weights_that_one_rank_alone_has_loaded_since_are_named_as_the_reason() -> None:
    three = timed(ranks(apart_from=4))
    three[1].state_loads.append(changed(25.0))
    finding = only(three)
    assert (finding.code, finding.certainty, finding.ranks) == ("DDP513", "evidence", (1,))
    assert lines(finding)[0] == 46


@pytest.mark.parametrize(
    "loads",
    [
        [[changed(25.0), changed(26.0)], [], []],  # for an evaluation, and back again
        [[changed(25.0)], [changed(25.0)], [changed(25.0)]],
        [[changed(25.0)], [changed(25.0, changed=False)], []],
        [[changed(5.0)], [], []],
        [[changed(45.0)], [], []],
    ],
)
def test_loads_that_are_put_back_or_of_all_ranks_or_of_another_time_are_not(
    loads: list[list[StateLoad]],
) -> None:
    three = timed(ranks(apart_from=4))
    for rank, own in zip(three, loads, strict=True):
        rank.state_loads.extend(own)
    assert only(three).code == "DDP300"


def stepped(apart: float) -> list[RankEvidence]:
    """Ranks whose metrics differ by that, and whose learning rates are still alike."""
    three = ranks()
    for rank in three:
        metrics = enumerate((1.0, 0.5, 0.25), 1)
        rank.plateaus = [Plateau(n, m + apart * rank.rank, at(50)) for n, m in metrics]
    return three


def test_a_plateau_that_is_stepped_with_unlike_metrics_is_told_before_the_rates_part() -> None:
    finding = only(stepped(0.1))
    assert (finding.code, finding.severity, lines(finding)) == ("DDP216", "warning", [50])


@pytest.mark.parametrize("times", [3, 2, 1])
def test_a_plateau_that_is_told_each_metric_once_for_every_rank_is_told(times: int) -> None:
    found = ranks()
    for rank in found:
        rank.plateaus = [Plateau(n, 0.5, at(50), again=(n - 1) % times > 0) for n in (1, 2, 4, 8)]
    assert [(each.code, lines(each)) for each in said(found)] == [("DDP211", [50])] * (times == 3)


@pytest.mark.parametrize(("op", "told"), [("reduce", [50, 49]), ("all_reduce", [50])])
def test_a_sum_that_one_rank_alone_was_given_is_told_with_the_metric(
    op: str, told: list[int]
) -> None:
    found = stepped(0.1)
    for rank in found:
        rank.plateaus = [replace(each, time=20.0 + each.number) for each in rank.plateaus]
        rank.collectives = [
            Collective("0", n, op, 19.5 + n, at(49), root=0) for n in range(1, 4)
        ] + [Collective("0", 9, "barrier", 40.0, at(60))]
    assert lines(only(found)) == told


@pytest.mark.parametrize("apart", [0.0, 1e-9])
def test_a_plateau_that_is_stepped_with_one_metric_is_right(apart: float) -> None:
    assert said(stepped(apart)) == []
