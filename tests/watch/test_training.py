"""What is written down of training steps is what the ranks did, and they do not notice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from ddpdoctor.evidence import Place, RankEvidence
from ddpdoctor.evidence.events.losses import Loss
from ddpdoctor.launch import ForkServer, Job
from ddpdoctor.observation import Observation
from ddpdoctor.watch import digests
from tests.patience import ENDLESS
from tests.watch.training_bodies import READERS

BODIES = Path(__file__).with_name("training_bodies.py")


def line(comment: str) -> int:
    """The line of training_bodies.py that ends with this comment."""
    lines = BODIES.read_text("utf-8").splitlines()
    (number,) = (n for n, text in enumerate(lines, 1) if text.endswith(f"# {comment}"))
    return number


def at(place: Place | None) -> int:
    assert place is not None
    assert place.file == str(BODIES)
    return place.line


def launched(
    server: ForkServer, folder: Path, body: str, nproc: int, *, watch: bool, **env: str
) -> Observation:
    """A launch whose ranks all ended well."""
    folder.mkdir(exist_ok=True)
    own = {"DDPDOCTOR_RUN_DIR": str(folder), **env}
    observation = Observation(folder, nproc)
    with server.launch(Job(f"{BODIES}:{body}", nproc, folder, env=own, watch=watch)) as world:
        assert world.wait(ENDLESS)
        observation.poll(world.poll())
    observation.poll([])
    stderr = [(folder / f"rank-{rank}.stderr").read_text("utf-8") for rank in range(nproc)]
    codes = [rank.fate.exit_code for rank in observation.evidence.ranks if rank.fate]
    assert codes == [0] * nproc, stderr
    return observation


def watched(
    server: ForkServer, folder: Path, body: str, nproc: int = 2, **env: str
) -> list[RankEvidence]:
    return launched(server, folder, body, nproc, watch=True, **env).evidence.ranks


def test_windows_tell_which_passes_were_reduced_and_where(
    server: ForkServer, tmp_path: Path
) -> None:
    ranks = watched(server, tmp_path, "accumulate")
    for rank in ranks:
        (training,) = rank.training.values()
        assert dict(training.windows) == {"ns": 2, "s": 1}
        assert (training.steps, training.reductions, training.kept_out) == (3, 3, "")
        assert at(training.places["held forward"]) == line("held")
        assert at(training.places["backward"]) in (line("held"), line("reduced"))
        assert at(training.places["step"]) == line("step")
        assert [sample.step for sample in rank.samples] == [1, 2, 4]
    first, second = (rank.samples for rank in ranks)
    for mine, theirs in zip(first, second, strict=True):
        assert mine.parameters == theirs.parameters
        assert mine.gradients == theirs.gradients
        assert set(mine.parameters) == {"0.weight", "0.bias", "2.weight", "2.bias"}
    assert first[0].gradients
    assert first[0].parameters != first[1].parameters


def test_the_loss_is_read_ever_more_seldom_and_as_it_was_before_it_was_scaled(
    server: ForkServer, tmp_path: Path
) -> None:
    for rank in watched(server, tmp_path, "fall"):
        losses = rank.of(Loss)
        assert [each.step for each in losses] == [*range(1, 11), *range(12, 21, 2), 23, 26, 29]
        assert {at(each.place) for each in losses} == {line("the loss")}
        scale = 1.0 + 9 * rank.rank
        wanted = {each.step: None if each.step == 7 else scale * each.step for each in losses}
        assert {each.step: each.value for each in losses} == wanted


def test_a_regular_training_is_looked_at_every_fourth_step_and_no_window_is_torn(
    server: ForkServer, tmp_path: Path
) -> None:
    for rank in watched(server, tmp_path, "train_on"):
        first, second = rank.training.values()
        assert first.steps == 100
        # All of the first 64, the 68th, and from the 72nd on, when there are two, all again.
        assert dict(first.windows) == {"ns": 64 + 1 + 29}
        assert dict(second.windows) == {"s": 31}
        assert first.reductions == 100
        assert [s.step for s in rank.samples if s.wrapper == 0] == [1, 2, 4, 8, 16, 32, 64, 101]


def test_every_nth_step_is_sampled_where_that_is_asked_for(
    server: ForkServer, tmp_path: Path
) -> None:
    ranks = watched(server, tmp_path, "accumulate", DDPDOCTOR_DIGEST_EVERY="1")
    assert [sample.step for sample in ranks[0].samples] == [1, 2, 3, 4]


def test_a_pass_past_the_wrapper_leaves_an_empty_window_and_its_line(
    server: ForkServer, tmp_path: Path
) -> None:
    ranks = watched(server, tmp_path, "go_past_the_wrapper")
    for rank in ranks:
        (training,) = rank.training.values()
        assert dict(training.windows) == {"": 4}
        assert at(training.places["bypass"]) == line("past")
    one, other = (rank.samples for rank in ranks)
    assert one[0].parameters == other[0].parameters
    assert one[0].gradients != other[0].gradients
    assert one[1].parameters != other[1].parameters


def test_all_that_may_part_the_ranks_is_written_with_its_line(
    server: ForkServer, tmp_path: Path
) -> None:
    ranks = watched(server, tmp_path, "all_at_once")
    for rank in ranks:
        (training,) = rank.training.values()
        assert at(training.places["added"]) == line("added")
        assert [(seed.value, at(seed.place)) for seed in rank.seeds] == [
            (7 + rank.rank, line("seed"))
        ]
        assert [(call.number, call.metric, at(call.place)) for call in rank.plateaus] == [
            (1, float(rank.rank), line("plateau")),
            (2, float(rank.rank), line("plateau")),
            (4, float(rank.rank), line("plateau once more")),
        ]
        assert [call.again for call in rank.plateaus] == [False, False, True]
        assert [each.again for each in rank.copies] == [False, True]
        assert {at(each.places[0]) for each in rank.copies} == {line("copy")}
        inside = [sample for sample in rank.samples if sample.wrapper == 0]
        assert inside[0].late == ("0.extra",)
        assert inside[0].noise != inside[1].noise
        assert inside[0].rates == (0.5,)
        outside = [sample for sample in rank.samples if sample.wrapper is None]
        assert set(outside[0].parameters) == {"Linear.weight", "Linear.bias"}
    assert ranks[0].copies[0].parameters != ranks[1].copies[0].parameters


def test_collectives_of_the_job_itself_are_not_taken_for_micro_batches(
    server: ForkServer, tmp_path: Path
) -> None:
    for rank in watched(server, tmp_path, "views_of_one_backward"):
        (training,) = rank.training.values()
        assert training.repeats == (1, 1)


def test_a_step_that_raised_and_a_step_inside_a_step_are_counted_once(
    server: ForkServer, tmp_path: Path
) -> None:
    (rank,) = watched(server, tmp_path, "steps_that_raise", 1)
    inner, outer = rank.training.values()
    assert (inner.steps, inner.kept_out) == (1, "closure")
    assert (outer.steps, dict(outer.windows)) == (2, {"s": 2})


def test_graphs_that_live_on_are_counted(server: ForkServer, tmp_path: Path) -> None:
    def kept(folder: str) -> int:
        (rank,) = watched(server, tmp_path / folder, "keep_graphs", 1)
        (training,) = rank.training.values()
        return training.graphs_kept

    assert kept("kept") == 3
    assert kept("detached") == 0


def test_nothing_of_the_job_is_kept_alive_changed_or_drawn(
    server: ForkServer, tmp_path: Path
) -> None:
    watched(server, tmp_path, "leave_nothing_behind")


def test_what_is_compiled_is_compiled_as_without_the_watch(
    server: ForkServer, tmp_path: Path
) -> None:
    def counted(*, watch: bool) -> dict[str, Any]:
        folder = tmp_path / str(watch)
        launched(server, folder, "compiled", 1, watch=watch)
        return dict(json.loads((folder / "rank-0.result").read_text("utf-8")))

    plain = counted(watch=False)
    assert plain["frames"]["ok"] > 0
    assert counted(watch=True) == plain


def returned(server: ForkServer, folder: Path, body: str, *, watch: bool, **env: str) -> Any:
    launched(server, folder, body, 1, watch=watch, **env)
    return json.loads((folder / "rank-0.result").read_text("utf-8"))


@pytest.mark.parametrize("reader", READERS)
def test_who_reads_functions_between_two_steps_finds_them_as_without_the_watch(
    server: ForkServer, tmp_path: Path, reader: str
) -> None:
    seen, plain = (
        returned(server, tmp_path / str(watch), "is_read", watch=watch, READER=reader)
        for watch in (True, False)
    )
    assert seen == plain


def test_where_no_wrapper_is_built_nothing_is_listened_to_and_nothing_is_left(
    server: ForkServer, tmp_path: Path
) -> None:
    assert set(returned(server, tmp_path, "train_alone_and_wrap_later", watch=True)) == {0}


def test_what_is_listened_to_ends_with_the_group_and_in_a_fork(
    server: ForkServer, tmp_path: Path
) -> None:
    assert returned(server, tmp_path, "evaluate_to_the_end", watch=True) == [1, 0, 0]


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float32, torch.bfloat16, torch.int64, torch.uint8, torch.bool]
)
def test_digests_are_equal_exactly_where_the_tensors_are(dtype: torch.dtype) -> None:
    values = torch.arange(24).reshape(2, 3, 4).to(dtype)
    changed = values.clone()
    changed[1, 2, 3] = 0
    told = digests.digests({"a": values, "b": values.clone(), "c": changed})
    assert told["a"] == told["b"] != told["c"]


def test_digests_read_scalars_and_any_layout_and_leave_out_what_is_not_whole() -> None:
    grid = torch.randn(2, 3, 4, 5)
    told = digests.digests(
        {
            "scalar": torch.tensor(1.5),
            "last": grid.to(memory_format=torch.channels_last),
            "first": grid,
            "empty": torch.zeros(0),
            "sparse": torch.eye(3).to_sparse(),
            "meta": torch.zeros(3, device="meta"),
        }
    )
    assert set(told) == {"scalar", "last", "first"}
    assert told["last"] == told["first"]


def test_a_large_tensor_costs_no_more_than_its_first_rows() -> None:
    large = torch.zeros(1000, 1000)
    assert digests.size({"large": large}) == 4 * digests.ELEMENTS
    changed = large.clone()
    changed[-1] = 1
    told = digests.digests({"a": large, "b": changed})
    assert told["a"] == told["b"]


def test_the_budget_is_spent_and_grows_with_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(digests.time, "monotonic", lambda: now)
    budget = digests.Budget()
    assert budget.take(digests.BURST)
    assert not budget.take(1)
    now += 2.0
    assert budget.take(2 * digests.RATE)
    assert not budget.take(1)
