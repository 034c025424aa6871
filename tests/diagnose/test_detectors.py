"""Each bug is named with its ranks and its line; its clean twin is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ddpdoctor.catalog import Finding, RankPlace
from ddpdoctor.diagnose import diagnose
from ddpdoctor.evidence import (
    Collective,
    Evidence,
    ExceptionRecord,
    Fate,
    FileEvent,
    Group,
    Place,
    RankEvidence,
    Stuck,
    Wrapper,
)

TRAIN = Place("/home/user/train.py", 10, "main")
TRAIN_60 = replace(TRAIN, line=60)
SAMPLER_INIT = Place("/lib/torch/utils/data/distributed.py", 80, "DistributedSampler.__init__")
WORLD = 4


def raised(kind: str, message: str, *, line: int = 10, function: str = "main") -> ExceptionRecord:
    place = replace(TRAIN, line=line, function=function)
    return ExceptionRecord(kind, message, (place,), 50.0, place)


def ranks(joined: bool = True) -> list[RankEvidence]:
    group = {"0": Group("0", tuple(range(WORLD)), "gloo", 1800.0, None)} if joined else {}
    return [RankEvidence(rank, WORLD, 100 + rank, groups=dict(group)) for rank in range(WORLD)]


def only(evidence: list[RankEvidence]) -> Finding:
    (finding,) = diagnose(Evidence(WORLD, evidence))
    return finding


def test_ranks_that_ended_well_give_no_finding() -> None:
    found = ranks()
    for rank in found:
        rank.fate = Fate(rank.rank, rank.pid, 0, None, 60.0)
    assert diagnose(Evidence(WORLD, found)) == []


def test_a_dict_config_is_named_with_its_line() -> None:
    found = ranks(joined=False)
    for rank in found:
        error = raised("AttributeError", "'dict' object has no attribute 'distributed'", line=38)
        rank.exceptions.append(error)
    finding = only(found)
    assert (finding.code, finding.ranks) == ("DDP101", (0, 1, 2, 3))
    assert finding.place is not None
    assert finding.place.line == 38


@pytest.mark.parametrize(
    ("joined", "message"),
    [
        (True, "'dict' object has no attribute 'distributed'"),
        (False, "'dict' object has no attribute 'apend'"),
    ],
)
def test_another_missing_attribute_of_a_dict_is_not_called_a_dict_config(
    joined: bool, message: str
) -> None:
    found = ranks(joined)
    found[1].exceptions.append(raised("AttributeError", message))
    assert only(found).code in ("DDP100", "DDP400")


def test_a_premature_sampler_is_named_with_the_users_line() -> None:
    found = ranks(joined=False)
    error = raised("ValueError", "Default process group has not been initialized, please", line=27)
    for rank in found:
        way = (replace(error.place, line=40), error.place)
        error = replace(error, frames=(*way, SAMPLER_INIT), user=way)
        rank.exceptions.append(error)
    finding = only(found)
    assert (finding.code, finding.ranks) == ("DDP201", (0, 1, 2, 3))
    assert [each.place.line for each in finding.places] == [27, 40], "the order is mended there"


def test_another_use_of_the_missing_group_is_not_blamed_on_a_sampler() -> None:
    found = ranks(joined=False)
    found[0].exceptions.append(
        raised("ValueError", "Default process group has not been initialized")
    )
    assert only(found).code == "DDP100"


UNUSED = (
    "Expected to have finished reduction in the prior iteration before starting a new one. "
    "Parameter indices which did not receive grad for rank {rank}: {indices}\n In addition"
)
REGISTERED = Place("/home/user/model.py", 5, "Layer.__init__")


def unused(indices: dict[int, str], dead: tuple[str, ...]) -> list[RankEvidence]:
    found = ranks()
    for rank in found:
        wrapper = Wrapper(replace(TRAIN, line=20), ("a", "b", "c"), False, False)
        wrapper.unreferenced = dead
        wrapper.registered = (REGISTERED,) if dead else ()
        rank.wrappers.append(wrapper)
        message = UNUSED.format(rank=rank.rank, indices=indices[rank.rank])
        rank.exceptions.append(raised("RuntimeError", message, line=30))
    return found


def test_indices_become_names_and_dead_parameters_are_called_dead() -> None:
    finding = only(unused(dict.fromkeys(range(WORLD), "0 2"), ("a", "c")))
    assert finding.code == "DDP301"
    assert finding.cause == "2 parameters registered but never used, dead: a, c."
    assert [p.place.line for p in finding.places if p.place] == [5, 20, 30]


def test_parameters_of_a_branch_are_called_conditional_and_told_by_rank() -> None:
    found = unused({0: "0", 1: "0", 2: "2", 3: "0"}, ())
    for rank in found:
        rank.wrappers[0].frozen = ()
    found[2].wrappers[0].uses = (Place("/home/user/model.py", 9, "Net.forward"),)
    finding = only(found)
    assert [p.place.line for p in finding.places if p.place] == [20, 30, 9]
    assert finding.cause == "2 parameters skipped by this step, conditional: a, c."
    assert "rank 2 skipped c" in finding.evidence


def hidden(*, find_unused: bool, dead: tuple[str, ...]) -> list[RankEvidence]:
    found = ranks()
    for rank in found:
        wrapper = Wrapper(TRAIN, ("a", "b"), find_unused, False, ("a",), dead)
        rank.wrappers.append(wrapper)
        rank.fate = Fate(rank.rank, rank.pid, 0, None, 60.0)
    return found


def test_dead_parameters_that_find_unused_hides_are_a_warning() -> None:
    finding = only(hidden(find_unused=True, dead=("a",)))
    assert (finding.code, finding.severity) == ("DDP301", "warning")
    assert "find_unused_parameters=True hides 1 parameter: a" in finding.cause


@pytest.mark.parametrize(("find_unused", "dead"), [(True, ()), (False, ("a",))])
def test_a_branch_not_taken_and_a_plain_wrapper_give_no_warning(
    find_unused: bool, dead: tuple[str, ...]
) -> None:
    assert diagnose(Evidence(WORLD, hidden(find_unused=find_unused, dead=dead))) == []


TORN_FORMS = [
    (
        "RuntimeError",
        "PytorchStreamReader failed reading zip archive: failed finding central directory",
    ),
    ("EOFError", "Ran out of input"),
    ("RuntimeError", "PytorchStreamReader failed reading file data/0: file read failed"),
    ("UnpicklingError", "Weights only load failed. This file can still be loaded"),
    ("OSError", "[Errno 22] Invalid argument"),
    ("RuntimeError", "weights.pth is a zip archive (did you mean to use torch.jit.load()?)"),
]


def torn(kind: str, message: str, *, saved: tuple[float, float | None]) -> list[RankEvidence]:
    """Rank 1 loads from 10.0 to 10.1 and fails; rank 0 saves the same path over `saved`."""
    found = ranks()
    save = FileEvent(
        "save", "/run/best.pth", *saved, replace(TRAIN, line=40), keys=("model", "ema")
    )
    load = FileEvent(
        "load", "/run/best.pth", 10.0, 10.1, replace(TRAIN, line=50), f"{kind}: {message}"
    )
    found[0].files.append(save)
    found[1].files.append(load)
    found[1].exceptions.append(raised(kind, message, line=50))
    return found


@pytest.mark.parametrize(("kind", "message"), TORN_FORMS)
def test_every_form_of_the_torn_read_is_one_proven_finding(kind: str, message: str) -> None:
    finding = only(torn(kind, message, saved=(9.9, 10.4)))
    assert (finding.code, finding.certainty, finding.ranks) == ("DDP501", "proven", (1,))
    assert [(p.ranks, p.place.line) for p in finding.places if p.place] == [((1,), 50), ((0,), 40)]


@pytest.mark.parametrize(("kind", "message"), TORN_FORMS)
def test_without_a_save_under_way_the_form_alone_is_evidence(kind: str, message: str) -> None:
    finding = only(torn(kind, message, saved=(1.0, 2.0)))
    assert (finding.code, finding.certainty) == ("DDP501", "evidence")


def test_a_whole_checkpoint_that_is_refused_is_not_called_torn() -> None:
    message = (
        "Weights only load failed. This file can still be loaded [...] WeightsUnpickler error: "
        "Unsupported global: GLOBAL argparse.Namespace was not an allowed global by default."
    )
    (finding,) = diagnose(Evidence(WORLD, torn("UnpicklingError", message, saved=(5.0, 9.0))))
    assert finding.code == "DDP400"


def test_a_missing_checkpoint_is_not_called_torn() -> None:
    finding = only(torn("FileNotFoundError", "[Errno 2] No such file", saved=(1.0, 2.0)))
    assert finding.code == "DDP400"


def test_a_failure_after_a_good_load_is_not_called_torn() -> None:
    found = torn("EOFError", "Ran out of input", saved=(9.9, 10.4))
    found[1].exceptions = [raised("ValueError", "bad label")]
    assert only(found).code == "DDP400"


def stuck(rank: int, op: str, seq: int, line: int, *, at_exit: bool = False) -> Stuck:
    place = replace(TRAIN, line=line)
    waiting = Collective("0", seq, op, 11.0, place, at_exit=at_exit)
    inside = Place("/lib/torch/distributed/distributed_c10d.py", 1, op)
    return Stuck(12.0, 13.0, (place, inside), place, (waiting,), {"0": seq})


def chain() -> list[RankEvidence]:
    found = torn("EOFError", "Ran out of input", saved=(9.9, 10.4))
    found[1].stuck = stuck(1, "barrier", 7, 60, at_exit=True)
    for rank in (0, 2, 3):
        found[rank].stuck = stuck(rank, "all_reduce", 7, 70)
    return found


def test_the_whole_chain_from_torn_read_to_waiting_peers_is_one_finding() -> None:
    finding = only(chain())
    assert (finding.code, finding.certainty, finding.ranks) == ("DDP504", "proven", (1,))
    assert [p.place.line for p in finding.places if p.place] == [50, 40, 60, 70]
    assert finding.places[-1].ranks == (0, 2, 3)


def test_the_deadlock_that_follows_from_a_torn_read_is_its_consequence_and_no_finding() -> None:
    found = chain()
    found[1].stuck = stuck(1, "barrier", 7, 60)
    finding = only(found)
    assert finding.code == "DDP501"
    assert finding.consequences == (
        "ranks 0, 2, 3 then waited for ever in all_reduce #7 at train.py:70",
    )


def test_the_rank_that_stands_elsewhere_is_the_culprit_of_a_deadlock() -> None:
    found = ranks()
    for rank in found:
        op, line = ("barrier", 80) if rank.rank == 2 else ("all_reduce", 70)
        rank.stuck = stuck(rank.rank, op, 5, line)
    finding = only(found)
    assert (finding.code, finding.title, finding.ranks) == ("DDP400", "deadlock", (2,))
    assert finding.place is not None
    assert finding.place.line == 80


def test_a_deadlock_is_told_with_the_line_where_all_were_together_last() -> None:
    def met(numbers: dict[int, int], line_of_rank_2: int = 60) -> list[RankPlace]:
        found = ranks()
        for rank in found:
            op, line = ("barrier", 80) if rank.rank == 2 else ("all_reduce", 70)
            rank.stuck = stuck(rank.rank, op, 5, line)
            for number, own in numbers.items():
                place = replace(TRAIN, line=line_of_rank_2 if rank.rank == 2 else own)
                rank.collectives.append(Collective("0", number, "broadcast", 5.0, place))
        return [each for each in only(found).places if each.phase == "together"]

    (at,) = met({3: 50, 4: 60})
    assert (at.ranks, at.place, at.doing[:13]) == ((0, 1, 2, 3), TRAIN_60, "broadcast #4,")
    assert not met({3: 60}), "the fourth was one of DDP's own"
    assert not met({4: 60}, line_of_rank_2=90), "they had parted before"


def test_two_against_two_is_undecidable_and_nobody_is_blamed() -> None:
    found = ranks()
    for rank in found:
        rank.stuck = stuck(rank.rank, ("barrier", "all_reduce")[rank.rank % 2], 5, 70)
    finding = only(found)
    assert finding.ranks == ()
    assert "undecidable" in finding.cause


def test_the_first_real_failure_is_the_cause_and_the_peers_errors_follow() -> None:
    found = ranks()
    found[2].exceptions.append(raised("ValueError", "bad label", line=33))
    said = f"[{'/path' * 20}/pair.cc:553] Connection closed by peer [127.0.0.1]:5"
    found[0].exceptions.append(raised("RuntimeError", said))
    finding = only(found)
    assert (finding.ranks, finding.cause) == ((2,), "ValueError: bad label")
    assert finding.consequences == (f"rank 0 then raised RuntimeError: {said}",)


@pytest.mark.parametrize(
    "message",
    [
        "Failed to recv, got 0 bytes. Connection was likely closed. Did the remote server shutdown",
        "failed to recv, got 0 bytes",
    ],
)
def test_who_loses_the_store_with_the_rank_that_hosts_it_has_not_failed(message: str) -> None:
    found = ranks(joined=False)
    found[0].exceptions.append(raised("ValueError", "bad label", line=33))
    for rank in found[1:]:
        rank.exceptions.append(raised("DistNetworkError", message))
    finding = only(found)
    assert (finding.ranks, finding.cause) == ((0,), "ValueError: bad label")
    assert len(finding.consequences) == len(found) - 1


def test_an_interruption_by_the_user_is_nobodys_fault() -> None:
    found = ranks()
    for rank in found:
        rank.exceptions.append(raised("KeyboardInterrupt", ""))
    assert diagnose(Evidence(WORLD, found)) == []


def test_a_rank_that_a_signal_ended_is_named_with_the_signal() -> None:
    found = ranks()
    found[3].fate = Fate(3, 103, None, 11, 60.0)
    found[0].exceptions.append(raised("RuntimeError", "Connection reset by peer"))
    finding = only(found)
    assert (finding.title, finding.ranks) == ("rank-died", (3,))
    assert "SIGSEGV" in finding.cause


def test_ranks_that_the_launcher_ended_are_nobodys_fault() -> None:
    found = ranks()
    for rank in found:
        rank.fate = Fate(rank.rank, rank.pid, None, 9, 60.0, killed_by_us=True)
    assert diagnose(Evidence(WORLD, found)) == []


def loads_of_best(reader_begun: float) -> list[RankEvidence]:
    """Rank 0 saves over an older version from 9.9 to 10.4 and then loads; rank 1 loads once."""
    found = ranks()
    path = "/run/best.pth"
    found[0].files += [
        FileEvent("save", path, 9.9, 10.4, replace(TRAIN, line=40)),
        FileEvent("load", path, 10.5, 10.6, TRAIN),
    ]
    load = FileEvent("load", path, reader_begun, reader_begun + 0.1, replace(TRAIN, line=50))
    found[1].files.append(load)
    for rank in found:
        rank.fate = Fate(rank.rank, rank.pid, 0, None, 60.0)
    return found


def test_a_load_that_came_before_the_save_read_the_old_version_and_is_the_same_race() -> None:
    finding = only(loads_of_best(9.0))
    assert (finding.code, finding.certainty, finding.ranks) == ("DDP501", "proven", (1,))
    assert "loaded the old best.pth" in finding.cause
    assert finding.place is not None
    assert finding.place.line == 50


def test_which_of_two_hosts_came_first_to_a_file_is_not_known_to_the_millisecond() -> None:
    found = loads_of_best(9.0)
    found[0].boot, found[1].boot = "node01", "node02"
    assert diagnose(Evidence(WORLD, found)) == []


def test_a_load_after_the_save_is_no_race() -> None:
    assert diagnose(Evidence(WORLD, loads_of_best(10.5))) == []


def test_a_resume_that_every_rank_does_before_anything_is_saved_is_no_race() -> None:
    found = ranks()
    for rank in found:
        rank.files.append(FileEvent("load", "/run/last.pth", 1.0, 1.1, TRAIN))
    found[0].files.append(FileEvent("save", "/run/last.pth", 5.0, 5.1, TRAIN))
    assert diagnose(Evidence(WORLD, found)) == []


def test_parameters_that_were_frozen_after_the_wrap_are_not_called_skipped() -> None:
    found = unused(dict.fromkeys(range(WORLD), "0 2"), ())
    for rank in found:
        rank.wrappers[0].frozen = ("a", "c")
        rank.wrappers[0].freezes = (replace(TRAIN, line=12),)
    finding = only(found)
    assert (finding.code, finding.certainty) == ("DDP301", "proven")
    assert finding.cause.startswith("2 parameters frozen after the wrap: a, c.")
    assert [p.place.line for p in finding.places if p.place] == [12, 20, 30]


def test_what_was_skipped_and_what_was_frozen_are_told_apart() -> None:
    found = unused(dict.fromkeys(range(WORLD), "0 2"), ())
    assert "dead, frozen since or skipped by a branch: a, c." in only(found).cause
    for rank in found:
        rank.wrappers[0].frozen = ("c",)
    assert only(found).cause == (
        "1 parameter skipped by this step, conditional: a. Frozen after the wrap: c."
    )
