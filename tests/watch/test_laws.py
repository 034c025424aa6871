"""What must be alike, what must differ, what an index means: seen on ranks, with right twins."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ddpdoctor.annotate import annotate
from ddpdoctor.catalog import Finding
from ddpdoctor.diagnose import diagnose
from ddpdoctor.launch import ForkServer, Job
from ddpdoctor.observation import Observation
from tests.thorough import one_in

BODIES = Path(__file__).with_name("laws_bodies.py")
PATIENCE = 120.0


def line(comment: str) -> int:
    lines = BODIES.read_text("utf-8").splitlines()
    (number,) = (n for n, text in enumerate(lines, 1) if text.endswith(f"# {comment}"))
    return number


def found(server: ForkServer, folder: Path, body: str, nproc: int = 2) -> list[Finding]:
    """What is said of a body, but for what is merely of interest."""
    return [each for each in said(server, folder, body, nproc) if each.severity != "info"]


def said(server: ForkServer, folder: Path, body: str, nproc: int = 2) -> list[Finding]:
    """All that is said of a body."""
    job = Job(f"{BODIES}:{body}", nproc, folder, watch=True)
    observation = Observation(folder, nproc)
    until = time.monotonic() + PATIENCE
    with server.launch(job) as world:
        while not world.ended and time.monotonic() < until:
            if observation.poll(world.poll()):
                break
            time.sleep(0.01)
        world.kill()
        observation.poll(world.poll())
    return diagnose(observation.evidence)


@pytest.mark.parametrize(
    ("body", "code", "comment"),
    one_in(
        2,
        [
            ("gathered_and_left_out", "DDP418", "the differentiable gather"),
            ("same_noise", "DDP205", "the noise"),
            ("same_noise_for_crops", "DDP205", "the noise"),
            ("same_steps", "DDP205", "the choice"),
            ("windows_of_one", "DDP202", "the window"),
            ("measured_alike", "DDP202", "the measured ones"),
            ("streamed_alike", "DDP202", "the stream"),
            ("played_alike", "DDP202", "the episode"),
            ("played_alike", "DDP202", "the seed of the players"),
            ("averaged_on_own_weights", "DDP300", "the step by hand"),
            ("averaged_on_own_weights", "DDP300", "the seed by hand"),
            ("clipped_by_each", "DDP306", "the clip of each"),
            ("clipped_while_held", "DDP306", "the clip of what is held"),
            ("averaged_with_holes", "DDP300", "the sum of two"),
            ("gathered_twice", "DDP208", "the whole set"),
            ("bare_head", "DDP300", "the step of both"),
            ("penalised_past", "DDP303", "the penalty"),
            ("judged_past", "DDP303", "the game is judged"),
            ("thawed", "DDP305", "the thaw"),
            ("goals_added_up", "DDP304", "the passes"),
            ("rarely_past", "DDP303", "the rare penalty"),
            ("waves_of_each", "DDP300", "the waves"),
            ("few_waves_of_each", "DDP300", "the waves"),
            ("average_of_one_evaluated", "DDP300", "the evaluation"),
            ("wrapped_average_of_one", "DDP300", "the wrapped average of one"),
            ("frozen_later", "DDP301", "the freeze"),
            ("looked_by_one", "DDP402", "the look of one"),
            ("rounds_of_one_order", "DDP203", "the round"),
            ("an_order_of_each", "DDP217", "the loader"),
            ("rows_of_each_table", "DDP217", "the loader of numbers"),
            ("bags_as_before", "DDP203", "the bags"),
            ("dropped_handle", "DDP414", "the dropped one"),
            ("step_on_a_copy", "DDP305", "the step on a copy"),
            ("step_on_a_part_of_a_copy", "DDP305", "the wrap of what is not held"),
            ("converted", "DDP305", "the conversion"),
            ("dealt_of_own_orders", "DDP204", "the order of the dealer"),
            ("batches_of_own_orders", "DDP204", "the order of the dealer"),
            ("caught", "DDP307", "the forward"),
            ("decayed_by_one", "DDP300", "the step of the schedule"),
            ("judged_at_will", "DDP402", "the judge goes back"),
            ("judged_at_will", "DDP402", "the forger goes back"),
            ("ignored_targets", "DDP309", "the loss"),
            ("packed_parts", "DDP309", "the packed loss"),
            ("own_counts", "DDP309", "the quotient"),
            ("by_the_count_of_all", "DDP309", "the share"),
            ("by_the_count_that_a_library_sums_up", "DDP309", "the share"),
            ("average_of_rank_0", "DDP513", "the load"),
            ("restored_by_one", "DDP513", "the restore"),
            ("average_from_before", "DDP506", "the late wrap"),
            ("average_of_the_untrained", "DDP506", "the twin"),
            ("saved_safely_by_all", "DDP502", "the safe file"),
            ("average_never_filled", "DDP506", "the average of too early"),
            ("average_by_each", "DDP300", "the average at will"),
            ("copy_by_each", "DDP300", "the copy by hand"),
            ("drawn_after_the_wrap", "DDP300", "the late draw"),
            ("cut_after_the_wrap", "DDP300", "the late cut"),
            ("own_queue", "DDP321", "the write"),
            ("spread_of_each", "DDP321", "the spread of its own"),
            ("shards_of_each_order", "DDP217", "the shuffle"),
            ("chosen_by_each", "DDP217", "the dice"),
            ("split_by_each", "DDP217", "the split"),
            ("split_by_each", "DDP217", "the seed of the split"),
            ("planned_for_one", "DDP211", "the schedule"),
            ("planned_as_steps_double", "DDP211", "the schedule"),
            ("planned_as_if_alone", "DDP211", "the schedule"),
            ("over", "DDP211", "the plan"),
            ("teachers_apart", "DDP300", "the seed"),
            ("average_on_rank_0", "DDP300", "the average of one"),
            ("scaled_by_each", "DDP300", "the scale"),
            ("group_of_one", "DDP300", "the group"),
            ("left_in_evaluation", "DDP300", "the training"),
            ("left_late_in_evaluation", "DDP300", "the rest"),
            ("totals_in_place", "DDP421", "the totals"),
            ("totals_told_between", "DDP421", "the totals of an epoch"),
            ("meters_in_place", "DDP421", "the totals of a meter"),
            ("looped_meters_in_place", "DDP421", "the totals of a meter"),
            ("like_meters_in_place", "DDP421", "the totals of a meter"),
            ("evaluated_by_own_statistics", "DDP312", "the sum of own errors"),
            ("workers_kept", "DDP203", "the workers"),
            ("table_in_place", "DDP421", "the totals of a table"),
            ("counts_in_place", "DDP421", "the totals of a table"),
            ("summed_copy", "DDP214", "the copy"),
            ("summed_and_left", "DDP214", "the totals of its own"),
            ("told_in_vain", "DDP214", "the broadcast copy"),
            ("state_of_rank_0", "DDP205", "the state"),
            ("metrics_of_each_order", "DDP413", "the sum"),
            ("parts_of_each_order", "DDP413", "the parts"),
            ("valued_by_some", "DDP308", "the loss of both models"),
            ("restored_past_the_wrapper", "DDP303", "the pass beside it"),
            ("rows_as_met", "DDP413", "the rows"),
            ("numbered_as_met", "DDP213", "the wrapped words"),
            ("numbered_by_dataset", "DDP213", "the speakers"),
            ("summed_gradients", "DDP211", "the sum of gradients"),
            ("summed_in_rounds", "DDP211", "the step on sums"),
            ("averaged_twice", "DDP211", "the sum of gradients"),
            ("by_the_devices_of_another", "DDP211", "the sum of gradients"),
            ("summed_for_nobody", "DDP300", "the sum in vain"),
            ("moved_by_each", "DDP300", "moves"),
            ("paced_by_each", "DDP300", "the step at its own pace"),
            ("summed_in_hooks", "DDP211", "the sum in a hook"),
            ("summed_after_hooks", "DDP211", "the sum after a hook"),
            ("summed_in_a_callback", "DDP211", "the sum in a callback"),
            ("summed_in_hooks_for_nobody", "DDP300", "the sum in a hook"),
            ("averaged_too_late", "DDP300", "the step too early"),
            ("critic_left_out", "DDP300", "the step of the critic"),
            ("weight_left_out", "DDP300", "the step of the weight"),
            ("half_averaged", "DDP300", "the step of half"),
            ("restored_on_one", "DDP513", "the weights of before"),
            ("dealt_as_the_first", "DDP202", "the part"),
            ("shaken_beside_a_closure", "DDP300", "the shaking"),
            ("past_the_wrapper_in_a_closure", "DDP303", "the step by a closure"),
            ("drawn_alike", "DDP202", "the seed of all"),
            ("dealt_inside_alike", "DDP202", "the sampler inside"),
            *(
                (each, "DDP217", "the sentences")
                for each in ("shared_in_own_order", "shared_twice")
            ),
            ("clipped_and_averaged_too_late", "DDP300", "the clipped step too early"),
            ("annealed_by_one", "DDP300", "the step by its own rate"),
            ("samples_of_all", "DDP202", "the sum of equals"),
            ("many_samples_of_all", "DDP202", "the sum of long equals"),
            ("told_by_three", "DDP309", "the sum of losses"),
            ("told_by_the_devices_of_another", "DDP309", "the telling"),
            ("told_twice_divided", "DDP309", "the sum of losses"),
        ],
    ),
)
def test_a_law_that_is_broken_is_named_with_its_line(
    server: ForkServer, tmp_path: Path, body: str, code: str, comment: str
) -> None:
    (finding,) = found(server, tmp_path, body)
    assert finding.code == code
    lines = [each.place.line for each in finding.places if each.place]
    assert line(comment) in lines


@pytest.mark.parametrize(
    "body",
    one_in(
        3,
        [
            *(
                "own_noise",
                "own_noise_for_crops",
                "own_samples_chosen",
                "dealt_out_later",
                "one_order",
                "augmented",
            ),
            *("as_many_targets", "counts_of_all", "count_of_nothing", "packed_samples"),
            *("step_on_raised_copies", "step_on_both", "step_on_some"),
            *(
                "average_of_all",
                "average_of_the_trained",
                "average_of_the_untrained_on_one",
                *("average_on_all", "average_sent", "average_together", "copy_together"),
                "average_filled_at_once",
                "saved_safely_by_one",
                "streamed_by_each",
                "chosen_alike",
                "restored_by_all",
                "shards_of_one_order",
                *("windows_of_each", "windows_halved", "measured_by_each"),
                *("dealt_of_one_order", "batches_of_one_order", "dealt_of_an_order_sent"),
                *("dealt_of_own_parts", "batches_of_own_parts"),
                *("judged_by_all", "all_judged", "decayed_by_all"),
                *("both_averaged", "restored_and_sent", "restored_on_each", "dealt_as_oneself"),
                "well_by_a_closure",
                *("shared_once", "drawn_by_each", "dealt_inside_by_each"),
                *("wrapped_head", "head_in_parts", "penalised_through", "played_by_each"),
                *("averaged_alike", "models_of_each", "planned_for_own"),
                *("gathered_shares", "kept_by_each"),
                "emptied_after_the_wrap",
                *("queue_of_all", "queue_of_each", "spread_of_all"),
                "planned_for_all",
                "one_teacher",
                "group_of_all",
                "stages",
                *("back_to_training", "rests_in_any_order"),
                "totals_copied",
                "copies_told_between",
                "a_head_for_each_micro_batch",
                *("meters_copied", "looped_meters_copied", "like_meters_copied"),
                *("table_copied", "counts_copied"),
                "correlated",
                *("summed_view", "summed_data", "summed_array", "summed_well", "summed_in_a_list"),
                *("summed_to_wait", "summed_for_its_caller", "told_objects", "split_by_all"),
                *("metrics_of_one_order", "metrics_of_shards", "rows_in_order", "task_of_each"),
                *("parts_of_one_order", "parts_in_turn", "valued_by_all", "rows_of_one_table"),
                *("share_times_ranks", "ranks_times_sum", "sum_of_all", "gradients_times_ranks"),
                *("by_the_mean_count", "by_a_constant", "loss_of_all", "scaled_by_a_library"),
                *("numbered_in_order", "words_of_each", "numbered_for_itself", "dataset_in_order"),
                *("state_of_each", "state_of_all", "state_for_a_while", "seeded_again"),
                "seeded_for_a_sample",
                "bags_told",
                *("clipped_as_one", "clipped_far_above"),
                *("clipped_when_together", "held_far_below"),
                *("averaged_before", "averaged_in_rounds", "averaged_over_rounds"),
                *("averaged_in_the_loss", "weighed_in_the_loss", "weighed_by_counts"),
                *("summed_beside", "averaged_weights", "samples_of_each"),
                *("annealed_by_all", "many_samples_of_each"),
                *("told_on_average", "told_divided_before", "told_as_part_of_the_epoch"),
                *("told_as_part_of_a_loop", "told_undivided", "told_of_two_passes", "told_running"),
                *("summed_for_direction", "summed_and_clipped", "averaged_while_going_back"),
                *("moved_alike", "paced_alike", "judged_through", "judged_together"),
                *("average_of_all_evaluated", "waves_of_all", "waves_in_a_buffer"),
                *("wrapped_average_of_all", "rounds_of_their_own", "looked_by_all"),
                *("goals_apart", "goals_set_to_zero", "rarely_through"),
                *("averaged_in_hooks", "averaged_after_hooks", "averaged_in_a_callback"),
                *("learnt_through_a_checkpoint", "tables_with_a_penalty", "averaged_at_times"),
                *("gathered_and_kept", "statistics_averaged", "evaluated_for_itself"),
                "workers_anew",
                "workers_that_count",
            ),
        ],
    ),
)
def test_what_keeps_the_law_is_not_spoken_of(server: ForkServer, tmp_path: Path, body: str) -> None:
    assert found(server, tmp_path, body) == []


@pytest.mark.parametrize(
    ("body", "comments"),
    [
        ("averages_undivided", ["the sum of averages", "the reading"]),
        ("averages_undivided_as_floats", ["the sum of averages", "the reading"]),
        ("averages_undivided_on_one", ["the sum of averages on one", "the reading"]),
        ("averages_of_what_is_held", ["the sum of averages", "the reading"]),
        ("averages_compared", ["the sum that is compared"]),
        ("means_of_features", ["the sum of features"]),
        ("averages_of_what_all_hold", []),
        ("averages_of_the_own_batches", ["the sum of averages", "the reading"]),
        *((f"averages_{each}", []) for each in ("of_all", "of_all_on_one", "of_the_batches")),
        *((f"averages_{each}", []) for each in ("of_the_samples", "in_hundredths")),
    ],
)
def test_the_sum_of_averages_made_in_python_is_suspected(
    server: ForkServer, tmp_path: Path, body: str, comments: list[str]
) -> None:
    suspected = [each for each in said(server, tmp_path, body) if each.code == "DDP309"]
    lines = [[at.place.line for at in each.places if at.place] for each in suspected]
    told = [line(comment) for comment in comments]
    assert [each[: len(told)] for each in lines] == [told][: len(told)]
    assert all(each.is_suspicion and "average" in each.cause for each in suspected)


def test_a_number_that_a_module_holds_as_an_attribute_is_suspected(
    server: ForkServer, tmp_path: Path
) -> None:
    (own,) = said(server, tmp_path, "weighed_by_an_attribute")
    assert (own.code, own.is_suspicion) == ("DDP312", True)
    assert "usual held something else" in own.cause


@pytest.mark.parametrize(
    ("body", "comments"),
    [
        ("averages_of_unlike_counts", ["the sum over unlike counts", "the plain mean"]),
        ("averages_of_like_counts", []),
        ("averages_that_are_weighed", []),
    ],
)
def test_the_plain_mean_of_averages_over_unlike_counts_is_told(
    server: ForkServer, tmp_path: Path, body: str, comments: list[str]
) -> None:
    told = found(server, tmp_path, body)
    lines = [at.place.line for each in told for at in each.places[:2] if at.place]
    assert lines == [line(comment) for comment in comments]
    assert all("6 on rank 0, 3 on rank 1" in each.cause for each in told)


def test_unlike_counts_of_numbers_that_are_alike_are_a_note(
    server: ForkServer, tmp_path: Path
) -> None:
    (note,) = said(server, tmp_path, "averages_that_hardly_differ")
    assert (note.code, note.severity) == ("DDP309", "info")


@pytest.mark.parametrize(
    ("body", "comment"),
    [
        ("kept_by_own", "read by numpy"),
        ("kept_by_own_numbers", "read one by one"),
        ("kept_by_own_arrays", "read as an array"),
        ("kept_by_arrays_of_all", None),
        ("kept_by_files_of_all", None),
        ("kept_by_all", None),
        ("kept_by_the_sum_on_one", None),
        ("kept_by_the_whole_set", None),
    ],
)
def test_numbers_that_numpy_reads_are_metrics_too(
    server: ForkServer, tmp_path: Path, body: str, comment: str | None
) -> None:
    kept = [each for each in said(server, tmp_path, body) if each.code == "DDP214"]
    lines = [each.places[0].place.line for each in kept if each.places[0].place]
    assert lines == ([] if comment is None else [line(comment)])


@pytest.mark.parametrize(
    ("body", "told"),
    [("levels_of_the_root", True), ("levels_of_all", False), ("level_on_the_root", False)],
)
def test_what_one_rank_alone_was_given_and_others_read_is_told(
    server: ForkServer, tmp_path: Path, body: str, told: bool
) -> None:
    kept = [each for each in said(server, tmp_path, body) if each.code == "DDP416"]
    assert len(kept) == told
    for each in kept:
        assert (each.severity, each.is_suspicion) == ("info", True)
        assert each.places[0].place is not None
        assert each.places[0].place.line == line("the reduction to one")
        assert each.places[1].ranks == (1,)


def test_calls_of_two_lines_that_met_in_silence_are_told_where_the_source_parts_the_ranks(
    server: ForkServer, tmp_path: Path
) -> None:
    (found,) = annotate(said(server, tmp_path, "scores_left_out"))
    assert (found.code, found.severity, found.certainty) == ("DDP307", "warning", "evidence")
    assert line("the quiet one") in {each.place.line for each in found.places if each.place}


@pytest.mark.parametrize("body", ["scores_of_nothing", "scores_of_all"])
def test_a_call_that_is_made_either_way_met_no_other(
    server: ForkServer, tmp_path: Path, body: str
) -> None:
    assert annotate(said(server, tmp_path, body)) == []
