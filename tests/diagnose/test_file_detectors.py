"""Bugs of files that ranks share are named from simulated evidence; correct jobs are not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ddpdoctor.evidence import (
    Collective,
    ExceptionRecord,
    Fate,
    FileEvent,
    RankEvidence,
    StateLoad,
    Wrapper,
)
from tests.diagnose.data_simulation import TRAIN, lines, only, said, shards, waiting, world


def file(action: str, path: str, begun: float, **facts: Any) -> FileEvent:
    line = {"save": 70, "load": 71, "mkdir": 72}.get(action, 73)
    place = replace(TRAIN, line=line)
    return replace(FileEvent(action, path, begun, begun + 0.1, place), **facts)


def test_a_path_that_every_rank_saves_is_one_finding() -> None:
    found = world()
    for rank in found:
        rank.files = [file("save", "/run/last.pt", begun, step=8) for begun in (50.0, 60.0)]
    finding = only(found)
    assert (finding.code, finding.ranks, lines(finding)) == ("DDP502", (0, 1, 2, 3), [70])


def test_a_line_that_saves_many_paths_on_every_rank_is_named_once() -> None:
    found = world()
    for rank in found:
        rank.files = [file("save", f"/run/epoch-{n}.pt", 50.0 + n, step=8) for n in range(3)]
    assert only(found).code == "DDP502"


def test_a_path_for_each_rank_is_right() -> None:
    found = world()
    for rank in found:
        rank.files = [file("save", f"/run/rank{rank.rank}.pt", 50.0, step=8)]
    assert said(found) == []


def test_the_same_path_on_two_hosts_is_two_files() -> None:
    found = world()
    for rank in found:
        rank.boot = f"host {rank.rank}"
        rank.files = [file("save", "/run/last.pt", 50.0, step=8)]
    assert said(found) == []


def test_a_cache_that_every_rank_builds_and_reads_is_no_checkpoint() -> None:
    found = world()
    for rank in found:
        rank.files = [
            file("save", "/data/words.pkl", 50.0, by="pickle"),
            file("load", "/data/words.pkl", 51.0, by="pickle"),
        ]
    finding = only(found)
    assert (finding.code, lines(finding)) == ("DDP212", [70, 71])


def cache(saves: dict[int, float], loads: list[float]) -> list[RankEvidence]:
    """Ranks that rename a cache into its place at these times, and read it at those."""
    found = world()
    for rank, load in zip(found, loads, strict=True):
        rank.files = [file("load", "/data/graphs.pt", load)]
        if rank.rank in saves:
            rank.files.insert(0, file("replace", "/data/graphs.pt", saves[rank.rank]))
    return found


def test_a_read_before_the_one_save_is_stale() -> None:
    finding = only(cache({1: 51.0}, [50.5, 52.0, 52.0, 50.5]))
    assert (finding.code, finding.ranks) == ("DDP501", (0, 3))


def test_a_read_between_the_saves_of_two_ranks_is_not() -> None:
    assert said(cache({1: 51.0, 2: 50.0}, [50.5, 52.0, 52.0, 50.5])) == []


def test_a_first_version_from_another_line_is_no_excuse() -> None:
    found = cache({1: 51.0, 2: 50.0}, [50.5, 52.0, 52.0, 50.5])
    found[2].files[0] = file("save", "/data/graphs.pt", 50.0)
    finding = only(found)
    assert (finding.code, finding.ranks) == ("DDP501", (0, 3))


def test_a_configuration_that_every_rank_writes_and_nobody_reads_is_left_alone() -> None:
    found = world()
    for rank in found:
        rank.files = [file("save", "/run/config.json", 50.0, by="json")]
    assert said(found) == []


def raised(rank: RankEvidence, kind: str, message: str, line: int = 71) -> None:
    place = replace(TRAIN, line=line)
    rank.exceptions.append(ExceptionRecord(kind, message, (place,), 55.0, place))
    rank.fate = Fate(rank.rank, rank.pid, 1, None, 56.0)


@pytest.mark.parametrize(
    ("names", "code"),
    [
        (("best-0.42.pt", "best-0.44.pt"), "DDP514"),
        (("state_0.pt", "state_1.pt"), "DDP400"),  # of each rank, and one has written none
    ],
)
def test_a_file_that_each_rank_names_for_itself_is_told_from_one_of_each_rank(
    names: tuple[str, str], code: str
) -> None:
    found = world()
    error = f"[Errno 2] No such file or directory: '/run/{names[1]}'"
    found[0].files = [
        file("save", f"/run/{names[0]}", 50.0),
        file("load", f"/run/{names[0]}", 52.0),
    ]
    found[1].files = [file("load", f"/run/{names[1]}", 52.0, error=f"FileNotFoundError: {error}")]
    raised(found[1], "FileNotFoundError", error)
    finding = only(found)
    assert (finding.code, finding.ranks, lines(finding)[0]) == (code, (1,), 71)
    if code == "DDP514":
        assert "rank 1 looks for best-0.44.pt, rank 0 for best-0.42.pt" in finding.cause


def test_a_rank_that_has_come_to_a_later_file_names_it_as_the_others_do() -> None:
    found = world()
    error = "[Errno 2] No such file or directory: '/run/epoch-2.pt'"
    saved = [file("save", "/run/epoch-1.pt", 49.0)]
    found[0].files = [*saved, file("load", "/run/epoch-1.pt", 50.0)]
    found[1].files = [
        file("load", "/run/epoch-1.pt", 50.0),
        file("load", "/run/epoch-2.pt", 52.0, error=f"FileNotFoundError: {error}"),
    ]
    raised(found[1], "FileNotFoundError", error)
    assert only(found).code == "DDP400"


def test_a_file_that_is_read_before_it_is_written_is_a_missing_wait() -> None:
    found = world()
    found[0].files = [file("save", "/run/stats.pt", 52.0)]
    error = "[Errno 2] No such file or directory: 'stats.pt'"
    for rank in found[1:]:
        rank.files = [file("load", "/run/stats.pt", 50.0, error=f"FileNotFoundError: {error}")]
        raised(rank, "FileNotFoundError", error)
    finding = only(found)
    assert (finding.code, finding.ranks, lines(finding)) == ("DDP407", (1, 2, 3), [71, 70])


def test_a_part_that_its_rank_is_still_writing_is_a_missing_wait() -> None:
    """Each rank writes its own, and rank 0 reads them all."""
    found = world()
    for rank in found:
        ended = 50.2 if rank.rank < 3 else 54.0
        rank.files = [file("save", f"/run/part{rank.rank}.pkl", 50.0, ended=ended, by="pickle")]
    found[0].files += [
        file("load", f"/run/part{n}.pkl", 51.0 + n / 10, by="pickle", error=error)
        for n, error in enumerate(["", "", "", "EOFError: Ran out of input"])
    ]
    raised(found[0], "EOFError", "Ran out of input")
    finding = only(found)
    assert (finding.code, finding.ranks, lines(finding)) == ("DDP407", (0,), [71, 70])


@pytest.mark.parametrize(
    ("missing", "unexpected", "code", "told"),
    [
        ('"0.weight", "0.bias"', '"module.0.weight", "module.0.bias"', "DDP508", [71, 79]),
        ('"module.0.weight"', '"0.weight"', "DDP508", [71, 79]),
        ('"head.weight"', '"neck.weight"', "DDP400", [71]),
    ],
)
def test_keys_that_differ_by_their_prefix_alone_are_told_from_others(
    missing: str, unexpected: str, code: str, told: list[int]
) -> None:
    found = world()
    message = (
        "Error(s) in loading state_dict for Sequential:\n"
        f"\tMissing key(s) in state_dict: {missing}. \n"
        f"\tUnexpected key(s) in state_dict: {unexpected}. "
    )
    found[0].files = [file("load", "/run/3.pt", 50.0)]
    found[1].files = [
        file("save", "/run/3.pt", 47.0),  # and a newer version of it
        file("save", "/run/3.pt", 49.0, place=replace(TRAIN, line=79)),
        file("save", "/run/2.pt", 49.5),
    ]
    raised(found[0], "RuntimeError", message)
    finding = only(found)
    assert (finding.code, finding.ranks, lines(finding)) == (code, (0,), told)


@pytest.mark.parametrize(
    ("name", "code"), [("'module.0.weight'", "DDP508"), ("'module.1.weight'", "DDP400")]
)
def test_a_parameter_looked_up_by_the_wrappers_name_is_told_from_other_names(
    name: str, code: str
) -> None:
    found = world()
    for rank in found:
        rank.wrappers = [Wrapper(TRAIN, ("0.weight", "0.bias"), False, False)]
        raised(rank, "KeyError", name)
    finding = only(found)
    assert (finding.code, finding.ranks, lines(finding)[:1]) == (code, (0, 1, 2, 3), [71])


def state(of: str = "module", time: float = 40.0, **facts: Any) -> StateLoad:
    place = replace(TRAIN, line=80)
    return replace(StateLoad(time, of, "Net", True, 4, 0, 0, False, place), **facts)


def test_a_load_of_keys_that_have_lost_their_beginnings_is_named() -> None:
    found = world()
    cut = ("ncoder.weight", "encoder.weight")
    for rank in found:
        rank.state_loads = [state(strict=False, missing=3, unexpected=2, cut=cut)]
    finding = only(found)
    assert (finding.code, finding.certainty, lines(finding)) == ("DDP508", "evidence", [80])
    assert "2 of them were left over" in finding.cause
    for rank in found:  # the rest is loaded by itself
        rank.state_loads.append(state(time=41.0))
    assert said(found) == []


def test_a_load_that_passes_over_all_keys_is_named() -> None:
    found = world()
    for rank in found:
        rank.state_loads = [state(strict=False, missing=4, unexpected=4, prefixed=True)]
    finding = only(found)
    assert (finding.code, finding.ranks, lines(finding)) == ("DDP508", (0, 1, 2, 3), [80])


def test_a_load_that_is_made_good_afterwards_is_not() -> None:
    found = world()
    for rank in found:
        first = state(strict=False, missing=4, unexpected=4, prefixed=True)
        rank.state_loads = [first, state(time=41.0)]
    assert said(found) == []


def test_a_failed_save_explains_why_the_others_wait() -> None:
    found = world(ended=False)
    found[0].files = [file("save", "/run/last.pt", 50.0, error="OSError: No space left on device")]
    for rank in found:
        waiting(rank, 9, "barrier" if rank.rank else "all_reduce", 90 if rank.rank else 91)
    finding = only(found)
    assert (finding.code, finding.ranks, lines(finding)) == ("DDP511", (0,), [70])
    assert "No space left" in finding.cause
    assert len(finding.consequences) == 2


def resumed(*, shared: bool = False, everywhere: bool = False) -> list[RankEvidence]:
    found = world(shards())
    for rank in found:
        if rank.rank == 0 or everywhere:
            rank.state_loads = [state("optimizer", name="Adam")]
        if shared:
            rank.collectives.append(Collective("0", 3, "broadcast", 45.0, TRAIN, root=0))
    return found


def test_an_optimizer_that_one_rank_resumed_is_named() -> None:
    finding = only(resumed())
    assert (finding.code, finding.ranks, lines(finding)) == ("DDP513", (0,), [80])


@pytest.mark.parametrize("how", ["shared", "everywhere"])
def test_a_resume_that_reaches_all_ranks_is_right(how: str) -> None:
    assert said(resumed(**{how: True})) == []


def made(*, before: bool) -> list[RankEvidence]:
    """Ranks 1 to 3 cannot make a folder: rank 0 has made it, or it was there before."""
    found = world()
    for rank in found[0 if before else 1 :]:
        error = "[Errno 17] File exists: '/run/1'"
        rank.files = [file("mkdir", "/run/1", 50.0, error=f"FileExistsError: {error}")]
        raised(rank, "FileExistsError", error, 72)
    if not before:
        found[0].files = [file("mkdir", "/run/1", 49.0)]
    return found


def test_a_folder_that_every_rank_makes_is_named() -> None:
    finding = only(made(before=False))
    assert (finding.code, finding.ranks) == ("DDP514", (1, 2, 3))
    assert lines(finding) == [72, 72]


def test_of_two_folders_that_could_not_be_made_the_last_is_named() -> None:
    found = made(before=False)
    for rank in found:
        early = replace(file("mkdir", "/run", 45.0), error="FileExistsError: '/run'")
        rank.files.insert(0, early if rank.rank else replace(early, error="", begun=44.0))
    assert "the folder 1 " in only(found).cause


def test_a_save_into_a_folder_that_another_rank_has_cleared_is_named() -> None:
    found = world()
    found[1].files = [file("rmtree", "/run/1", 49.0)]
    error = "Parent directory /run/1 does not exist."
    found[0].files = [file("save", "/run/1/last.pt", 50.0, error=f"RuntimeError: {error}")]
    raised(found[0], "RuntimeError", error, 70)
    finding = only(found)
    assert (finding.code, finding.ranks, lines(finding)) == ("DDP514", (0,), [73, 70])
    found[2].files = [file("mkdir", "/run/1", 49.5)]
    assert only(found).code == "DDP400"  # it was there again
    found[3].files = [file("save", "/run/1/last.pt", 48.0)]
    assert only(found).code == "DDP514"  # and what had been saved in it was not


@pytest.mark.parametrize(
    ("made", "by", "code"), [(51.0, 2, "DDP407"), (45.0, 2, "DDP511"), (51.0, 0, "DDP511")]
)
def test_a_save_into_a_folder_that_another_rank_makes_later_is_a_missing_wait(
    made: float, by: int, code: str
) -> None:
    found = world()
    error = "Parent directory /run/1 does not exist."
    found[0].files = [file("save", "/run/1/last.pt", 50.0, error=f"RuntimeError: {error}")]
    found[by].files.append(file("mkdir", "/run/1", made))
    raised(found[0], "RuntimeError", error, 70)
    raised(found[1], "RuntimeError", "Connection closed by peer", 90)
    finding = only(found)
    assert (finding.code, finding.ranks) == (code, (0,))


def failed_to_save(error: str, action: str = "save") -> list[RankEvidence]:
    """Rank 0 could not save into a folder that rank 2 has made, or made anew, a second later."""
    found = world()
    found[0].files = [file(action, "/run/1/last.pt", 50.0, error=error)]
    found[2].files = [file("mkdir", "/run/1", 51.0)]
    return found


def test_a_full_disk_is_no_matter_of_a_folder_that_is_made_anew() -> None:
    found = failed_to_save("OSError: [Errno 28] No space left on device")
    raised(found[0], "OSError", "[Errno 28] No space left on device", 70)
    raised(found[1], "RuntimeError", "Connection closed by peer", 90)
    assert only(found).code == "DDP511"


def test_a_folder_that_was_removed_and_made_again_was_there_before() -> None:
    error = "Parent directory /run/1 does not exist."
    found = failed_to_save(f"RuntimeError: {error}")
    found[2].files.insert(0, file("rmtree", "/run/1", 50.5))
    raised(found[0], "RuntimeError", error, 70)
    raised(found[1], "RuntimeError", "Connection closed by peer", 90)
    assert only(found).code == "DDP511"


def test_a_rename_into_a_folder_that_another_rank_makes_later_is_a_missing_wait() -> None:
    error = "[Errno 2] No such file or directory: '/run/1/last.tmp' -> '/run/1/last.pt'"
    found = failed_to_save(f"FileNotFoundError: {error}", "replace")
    raised(found[0], "FileNotFoundError", error, 73)
    assert only(found).code == "DDP407"


def test_a_failure_that_was_swallowed_is_told_by_what_came_of_it() -> None:
    found = failed_to_save("FileNotFoundError: [Errno 2] No such file or directory: '/run/1'")
    for rank in found:
        rank.fate = None
        waiting(rank, 9, "barrier" if rank.rank else "all_reduce", 90 if rank.rank else 91)
    assert only(found).code == "DDP511"


def test_a_rename_that_was_not_permitted_is_no_race() -> None:
    found = world()
    for rank in found:
        rename = file("replace", "/data/words.pkl", 51.0, source="/data/words.tmp")
        rank.files = [file("save", "/data/words.tmp", 50.0, by="pickle"), rename]
    error = "[Errno 13] Permission denied: '/data/words.tmp' -> '/data/words.pkl'"
    found[1].files[1] = replace(found[1].files[1], error=f"PermissionError: {error}")
    raised(found[1], "PermissionError", error, 73)
    assert only(found).code == "DDP400"


def test_who_removed_a_folder_last_cannot_blame_another() -> None:
    found = world()
    found[0].files = [file("rmtree", "/run/1", 46.0)]
    error = "[Errno 2] No such file or directory: '/run/1/last.pt'"
    found[1].files = [
        file("mkdir", "/run/1", 47.0),
        file("rmtree", "/run/1", 48.0),
        file("save", "/run/1/last.pt", 50.0, error=f"FileNotFoundError: {error}"),
    ]
    raised(found[1], "FileNotFoundError", error, 70)
    assert only(found).code == "DDP400"


@pytest.mark.parametrize(
    ("action", "saved_again", "code"),
    [("unlink", False, "DDP514"), ("load", False, "DDP514"), ("unlink", True, "DDP400")],
)
def test_a_file_that_every_rank_deletes_is_gone_for_the_second(
    action: str, saved_again: bool, code: str
) -> None:
    found = world()
    found[0].files = [file("save", "/run/3.pt", 40.0)]
    found[1].files = [file("unlink", "/run/3.pt", 49.0)]
    if saved_again:
        found[0].files.append(file("save", "/run/3.pt", 49.5))
    error = "[Errno 2] No such file or directory: '/run/3.pt'"
    late = file(action, "/run/3.pt", 50.0, error=f"FileNotFoundError: {error}")
    found[2].files = [late]
    raised(found[2], "FileNotFoundError", error, 74)
    finding = only(found)
    assert (finding.code, finding.ranks) == (code, (2,))
    if not saved_again:
        assert "rank 1 had removed the file 3.pt" in finding.cause
        assert ("every rank does so" in finding.cause) == (action == "unlink")
        assert lines(finding) == [found[1].files[0].place.line, 74]


@pytest.mark.parametrize("by_all", [True, False])
def test_a_temporary_name_that_several_ranks_rename_is_found_by_the_first(by_all: bool) -> None:
    found = world()
    for rank in found:
        name = "/data/words.tmp" if by_all else f"/data/words.{rank.rank}"
        rename = file("replace", "/data/words.pkl", 51.0, source=name)
        rank.files = [file("save", name, 50.0, by="pickle"), rename]
    error = "FileNotFoundError: '/data/words.tmp'"
    found[1].files[1] = replace(found[1].files[1], error=error)
    raised(found[1], "FileNotFoundError", error, 73)
    finding = only(found)
    assert (finding.code, lines(finding)) == (("DDP212", [70, 73]) if by_all else ("DDP400", [73]))


def test_a_folder_that_was_there_before_is_another_matter() -> None:
    assert only(made(before=True)).code == "DDP400"


def named_apart(message: str) -> list[RankEvidence]:
    """Each rank has made a folder of its own name, and rank 1 finds there no file of rank 0's."""
    found = world()
    for rank in found:
        rank.files = [file("mkdir", f"/run/at-{rank.rank}", 40.0)]
    found[0].files.append(file("save", "/run/at-0/last.pt", 45.0))
    error = "FileNotFoundError: [Errno 2] No such file or directory: '/run/at-1/last.pt'"
    found[1].files.append(file("load", "/run/at-1/last.pt", 50.0, error=error))
    raised(found[1], message.partition(":")[0], message, 71)
    return found


def test_folders_that_each_rank_names_for_itself_are_named() -> None:
    finding = only(named_apart("FileNotFoundError: no file '/run/at-1/last.pt'"))
    assert (finding.code, finding.ranks, lines(finding)[0]) == ("DDP514", (1,), 72)


def test_a_missing_file_that_was_caught_did_not_end_the_rank() -> None:
    assert only(named_apart("ValueError: a shape is wrong")).code == "DDP400"


def piled_up(*, deleted: bool = False, saved: int = 7) -> list[RankEvidence]:
    """Rank 0 saves an epoch after the other, until the disk is full."""
    found = world()
    error = "[enforce fail at inline_container.cc:672] . unexpected pos 768 vs 662"
    saves = [file("save", f"/run/{n}.pt", 10.0 + n) for n in range(saved)]
    found[0].files = [*saves, file("save", "/run/last.pt", 50.0, error=f"RuntimeError: {error}")]
    if deleted:
        found[0].files.insert(3, file("unlink", "/run/0.pt", 12.5))
    raised(found[0], "RuntimeError", error, 70)
    for rank in found[1:]:
        raised(rank, "RuntimeError", "Connection closed by peer", 90)
    return found


def test_a_disk_that_is_full_of_checkpoints_is_named() -> None:
    finding = only(piled_up())
    assert (finding.code, finding.ranks, lines(finding)) == ("DDP512", (0,), [70])
    assert "7 files" in finding.cause
    assert len(finding.consequences) == 3


def test_files_that_were_renamed_into_place_count_once() -> None:
    found = piled_up(saved=4)
    found[0].files[1:1] = [
        file("replace", "/run/best.pt", 10.5, source="/run/0.pt"),
    ]
    assert only(found).code == "DDP511"


@pytest.mark.parametrize("how", [{"deleted": True}, {"saved": 2}])
def test_a_disk_that_is_full_of_something_else_is_another_matter(how: dict[str, Any]) -> None:
    assert only(piled_up(**how)).code == "DDP511"


def killed(*before: FileEvent) -> list[RankEvidence]:
    """Rank 0 is killed in a save; the others lose it."""
    found = world()
    found[0].files = [*before, replace(file("save", "/run/last.pt", 50.0), ended=None)]
    found[0].fate = Fate(0, found[0].pid, None, 9, 51.0)
    for rank in found[1:]:
        raised(rank, "RuntimeError", "Connection closed by peer", 90)
    return found


@pytest.mark.parametrize("action", ["save", "load", "replace"])
def test_a_rank_that_dies_while_it_saves_over_a_checkpoint_has_lost_both(action: str) -> None:
    finding = only(killed(file(action, "/run/last.pt", 40.0, source="/run/other.pt")))
    assert (finding.code, finding.ranks, lines(finding)) == ("DDP503", (0,), [70])
    assert len(finding.consequences) == 3


@pytest.mark.parametrize(
    "before",
    [
        (),
        (file("save", "/run/first.pt", 40.0),),
        (file("save", "/run/last.pt", 40.0, error="OSError: No space left on device"),),
        (file("save", "/run/last.pt", 40.0), file("unlink", "/run/last.pt", 41.0)),
        (
            file("save", "/run/last.pt", 40.0),
            file("replace", "/run/best.pt", 41.0, source="/run/last.pt"),
        ),
    ],
)
def test_a_rank_that_dies_while_it_saves_a_new_file_has_lost_no_checkpoint(
    before: tuple[FileEvent, ...],
) -> None:
    assert only(killed(*before)).code == "DDP400"


def half_saved() -> list[RankEvidence]:
    """Rank 1 finds what rank 0 saves at its start, and its own part is missing."""
    found = world()
    part = "/run/latest/rank1.pt"
    error = f"[Errno 2] No such file or directory: '{part}'"
    found[0].files = [file("save", "/run/latest/main.pt", 40.0, place=replace(TRAIN, line=78))]
    found[1].files = [
        file("load", "/run/latest/main.pt", 41.0, place=replace(TRAIN, line=79)),
        file("load", part, 42.0, error=f"FileNotFoundError: {error}"),
    ]
    found[1].state_loads = [state(time=41.5)]
    raised(found[1], "FileNotFoundError", error)
    return found


def test_what_another_rank_has_just_begun_to_save_is_nothing_to_resume_from() -> None:
    finding = only(half_saved())
    assert (finding.code, finding.certainty, finding.ranks) == ("DDP513", "evidence", (1,))
    assert lines(finding) == [79, 78, 71]


@pytest.mark.parametrize("case", ["waited", "read by both", "not restored", "later", "elsewhere"])
def test_a_part_that_is_missing_for_another_reason_is_an_exception(case: str) -> None:
    found = half_saved()
    if case == "waited":
        found[1].collectives.append(Collective("0", 9, "barrier", 40.5, TRAIN))
    elif case == "read by both":
        found[0].files.insert(0, file("load", "/run/latest/main.pt", 39.0))
    elif case == "not restored":
        found[1].state_loads.clear()
    elif case == "later":
        found[1].files[0] = replace(found[1].files[0], step=4)
    else:
        found[1].files[0] = replace(found[1].files[0], path="/run/base.pt")
        found[0].files[0] = replace(found[0].files[0], path="/run/base.pt")
    assert only(found).code == "DDP400"
