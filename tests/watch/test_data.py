"""What is written down of loaders, samplers and files is what the ranks did with them."""

from __future__ import annotations

from pathlib import Path

from ddpdoctor.evidence import Place, RankEvidence
from ddpdoctor.evidence.events.reordered import Reordered
from ddpdoctor.evidence.events.shuffled import Shuffled
from ddpdoctor.launch import ForkServer, Job
from ddpdoctor.observation import Observation
from tests.patience import ENDLESS

BODIES = Path(__file__).with_name("data_bodies.py")


def line(comment: str) -> int:
    """The line of data_bodies.py that ends with this comment."""
    lines = BODIES.read_text("utf-8").splitlines()
    (number,) = (n for n, text in enumerate(lines, 1) if text.endswith(f"# {comment}"))
    return number


def at(place: Place | None) -> int:
    assert place is not None
    return place.line


def watched(server: ForkServer, folder: Path, body: str, nproc: int = 2) -> list[RankEvidence]:
    """The evidence of ranks that all ended well and printed no error."""
    job = Job(f"{BODIES}:{body}", nproc, folder, env={"DDPDOCTOR_RUN_DIR": str(folder)}, watch=True)
    observation = Observation(folder, nproc)
    with server.launch(job) as world:
        assert world.wait(ENDLESS)
        observation.poll(world.poll())
    observation.poll([])
    stderr = [(folder / f"rank-{rank}.stderr").read_text("utf-8") for rank in range(nproc)]
    codes = [rank.fate.exit_code for rank in observation.evidence.ranks if rank.fate]
    assert codes == [0] * nproc, stderr
    return observation.evidence.ranks


def test_passes_are_told_apart_by_what_they_feed(server: ForkServer, tmp_path: Path) -> None:
    for rank in watched(server, tmp_path, "train_and_evaluate"):
        training, evaluation = rank.loaders
        assert (at(training.place), training.dataset) == (line("the loader"), "TensorDataset")
        assert (training.length, training.batches, training.plain) == (11, 3, False)
        assert training.sampler is not None
        sampler = training.sampler
        assert (sampler.rank, sampler.seed, at(sampler.place)) == (
            rank.rank,
            5,
            line("the sampler"),
        )
        first, second = training.epochs.values()
        assert (first.batches, first.steps, first.sampler_epoch) == (3, 3, 0)
        assert (second.sampler_epoch, second.order != first.order) == (1, True)
        assert (first.told, second.told) == (1, 2)
        assert (first.rows, first.fed) == (2, 2)
        assert at(first.place) == line("the loop")
        assert first.ended is not None
        assert training.trains
        assert evaluation.members == (3, 8, 10)
        assert at(evaluation.members_place) == line("the subset")
        (held,) = evaluation.epochs.values()
        assert (held.batches, held.steps, held.graded) == (2, 0, False)
        assert evaluation.identity == training.identity != ""


def test_a_pass_that_was_left_has_no_part_in_steps_that_are_made_by_another(
    server: ForkServer, tmp_path: Path
) -> None:
    for rank in watched(server, tmp_path, "try_before_training"):
        tried, trained = rank.loaders
        assert [(e.batches, e.steps) for e in tried.epochs.values()] == [(2, 0), (4, 0), (4, 0)]
        assert trained.epochs[1].batches == 3
        assert (tried.trains, trained.trains) == (False, True)


def test_what_a_sampler_of_the_users_own_shuffles_from_is_known_of_each_pass(
    server: ForkServer, tmp_path: Path
) -> None:
    for rank in watched(server, tmp_path, "shuffle_by_the_users_own_sampler"):
        assert len(rank.loaders) == 4
        for loader in rank.loaders:
            first, again, other = loader.epochs.values()
            assert (first.mixed, first.order) == (again.mixed, again.order)
            assert len(first.mixed) == 1
            assert first.mixed != other.mixed
            assert first.order != other.order
            assert at(first.mixed_at) == line("shuffled")


def test_the_same_set_is_recognised_on_all_ranks_and_shards_have_other_orders(
    server: ForkServer, tmp_path: Path
) -> None:
    first, second = watched(server, tmp_path, "train_and_evaluate")
    assert first.loaders[0].identity == second.loaders[0].identity
    assert first.loaders[0].epochs[1].order != second.loaders[0].epochs[1].order
    assert first.loaders[1].epochs[1].content == second.loaders[1].epochs[1].content


def test_all_ways_to_iterate_are_followed_and_none_is_broken(
    server: ForkServer, tmp_path: Path
) -> None:
    ranks = watched(server, tmp_path, "iterate_in_many_ways")
    plain, persistent, stream, files, awkward, shuffled, single, dealt = ranks[0].loaders
    assert (plain.epochs[1].batches, plain.epochs[1].ended) == (5, None)
    assert [(e.batches, e.ended is None) for e in persistent.epochs.values()] == [(4, False)] * 2
    assert persistent.epochs[1].order == persistent.epochs[2].order
    assert (stream.iterable, stream.epochs[1].batches) == (True, 2)
    assert awkward.identity == ""
    assert (shuffled.plain, single.batches) == (True, None)
    assert (dealt.plain, dealt.batches) == (False, 2)  # nobody draws from its `sampler`
    mine, theirs = (rank.loaders[3].listings["paths"] for rank in ranks)
    assert mine[0] != theirs[0]
    assert mine[1] == theirs[1]
    assert files.epochs[1].batches == 3


def test_a_dataset_that_speaks_of_ranks_is_known(server: ForkServer, tmp_path: Path) -> None:
    ranks = watched(server, tmp_path, "deal_by_rank")
    assert [rank.loaders[0].by_rank for rank in ranks] == [True, True]
    assert [rank.of(Shuffled) for rank in ranks] == [[], []]  # the sampler's order is known


def test_orders_are_written_down_in_the_training_too(server: ForkServer, tmp_path: Path) -> None:
    one, other = (rank.of(Reordered) for rank in watched(server, tmp_path, "preview_on_rank_0"))
    order, preview = line("the order"), line("the preview")
    assert [at(each.place) for each in one] == [order, preview] * 3
    assert [at(each.place) for each in other] == [order] * 3
    orders = [each for each in one if at(each.place) == order]
    assert {each.content for each in orders} == {each.content for each in other} != {""}
    assert orders[0].state == other[0].state
    assert orders[1].state != other[1].state
    assert [each.step for each in other] == [0, 4, 8]


def test_join_is_written_down(server: ForkServer, tmp_path: Path) -> None:
    assert [rank.joins for rank in watched(server, tmp_path, "join")] == [1, 1]


def test_files_of_every_library_are_written_down(server: ForkServer, tmp_path: Path) -> None:
    (rank,) = watched(server, tmp_path, "touch_files", nproc=1)
    kinds = [(file.action, file.by, Path(file.path).name) for file in rank.files[:9]]
    assert kinds == [
        ("mkdir", "os", "data"),
        ("save", "numpy", "a.npy"),
        ("load", "numpy", "a.npy"),
        ("save", "pickle", "b.pkl"),
        ("save", "json", "c.json"),
        ("save", "torch", "d.pt"),
        ("load", "torch", "d.pt"),
        ("unlink", "os", "d.pt"),
        ("unlink", "os", "of another"),
    ]
    assert at(rank.files[0].place) == line("the mkdir")
    assert (at(rank.files[3].place), rank.files[3].keys) == (line("the pickle dump"), ("epoch",))
    failed, removed = rank.files[-2:]
    assert (failed.action, removed.action) == ("save", "rmtree")
    assert failed.error.startswith("RuntimeError: Parent directory")


def test_a_loop_of_loads_is_not_written_down_line_by_line(
    server: ForkServer, tmp_path: Path
) -> None:
    (rank,) = watched(server, tmp_path, "touch_files", nproc=1)
    here = [file for file in rank.files if at(file.place) == line("the loop of loads")]
    assert 1 <= len(here) <= 40
    assert [f.action for f in rank.files if at(f.place) == line("after many")] == ["unlink"]


def test_a_state_that_does_not_fit_is_told_with_the_reason(
    server: ForkServer, tmp_path: Path
) -> None:
    (rank,) = watched(server, tmp_path, "touch_files", nproc=1)
    module, optimizer = rank.state_loads
    assert (module.of, module.strict, module.missing, module.unexpected) == ("module", False, 2, 2)
    assert (module.prefixed, at(module.place)) == (True, line("the state"))
    assert (optimizer.of, optimizer.name, optimizer.prefixed) == ("optimizer", "SGD", False)


def test_a_warning_of_a_loader_reads_as_without_the_doctor(
    server: ForkServer, tmp_path: Path
) -> None:
    watched(server, tmp_path, "warn_as_without_the_doctor", nproc=1)
    text = (tmp_path / "rank-0.stderr").read_text("utf-8")
    assert "pin_memory" in text
    assert "ddpdoctor/watch" not in text
