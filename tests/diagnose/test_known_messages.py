"""Messages that are known, and what looks like them."""

import re

import pytest

from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detectors import general
from ddpdoctor.diagnose.detectors.known_messages import detect, is_known
from ddpdoctor.diagnose.detectors.messages import MESSAGES, Message
from ddpdoctor.evidence import Evidence, ExceptionRecord, Place, RankEvidence, Wrapper
from tests.diagnose.data_simulation import epoch, loader

TRAIN = Place("/home/u/train.py", 7, "main")
SPAWN = Place("/usr/lib/python3.11/multiprocessing/reduction.py", 60, "dump")
SAVE = Place("/site-packages/torch/serialization.py", 900, "save")
SEND = Place("/site-packages/torch/distributed/distributed_c10d.py", 3100, "_tensor_to_object")

SAID = {
    "DDP106 devices-not-bound": "RuntimeError: CUDA error: invalid device ordinal",
    "DDP108 unreachable-peer": "DistNetworkError: The client socket has timed out after 600000ms",
    "DDP100 address-not-told-again": "DistStoreError: wait timeout after 60000ms, keys: "
    "/torch.rendezvous.this-run.1/MASTER_ADDR",
    "DDP400 objects-without-numpy": "RuntimeError: Numpy is not available",
    "DDP116 backend-device-mismatch": "RuntimeError: Tensors must be CUDA and dense",
    "DDP100 cuda-in-forked-process": "RuntimeError: Cannot re-initialize CUDA in forked subprocess",
    "DDP100 group-not-initialised": "ValueError: Default process group has not been initialized, x",
    "DDP311 marked-ready-twice": "RuntimeError: Encountered gradient which is undefined, but still "
    "allreduced by DDP reducer. This indicates a bug in DDP implementation, please report a bug.",
    "DDP402 collective-order-mismatch": "RuntimeError: Detected mismatch between collectives on "
    "ranks. Rank 1 is running collective: CollectiveFingerPrint(SequenceNumber=0, "
    "OpType=ALLREDUCE), but Rank 0 is running collective: CollectiveFingerPrint(SequenceNumber=0"
    "OpType=BARRIER).Collectives differ in the following aspects: \t Op type: ALLREDUCEvs BARRIER",
    "DDP307 rank-local-skip": "RuntimeError: Skipping the `training_step` by returning None in "
    "distributed training is not supported. It is recommended that you rewrite your training logic",
    "DDP403 collective-shape-mismatch": "RuntimeError: op.preamble.length <= op.nbytes",
    "DDP403 root-outside-its-group": "ValueError: Global rank 0 is not part of group <torch.x>",
    "DDP500 unreadable-checkpoint": "RuntimeError: PytorchStreamReader failed reading file data/0: "
    "file read failed",
    "DDP604 shared-memory-exhausted": "RuntimeError: DataLoader worker (pid 5) is killed by "
    "signal: Bus error.",
    "DDP400 batch-of-one": "ValueError: Expected more than 1 value per channel when training, got "
    "input size torch.Size([1, 12, 1, 1])",
    "DDP600 out-of-memory": "OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB",
    "DDP600 too-many-open-files": "RuntimeError: received 0 items of ancdata",
    "DDP600 no-event-loop": "DistStoreError: Failed to init uv loop",
    "DDP600 worker-died": "RuntimeError: DataLoader worker (pid(s) 5) exited unexpectedly",
    "DDP100 nccl-failed": "DistBackendError: NCCL error in: x.cpp:1, ncclSystemError: System call",
}


def ranks_that_raise(*said: str, world: int = 2, frames: tuple[Place, ...] = ()) -> Case:
    ranks = [RankEvidence(rank, world, pid=rank + 1) for rank in range(world)]
    for rank, text in zip(ranks, said, strict=False):
        kind, _, message = text.partition(": ")
        frames = frames or (TRAIN, SPAWN, SAVE, SEND)
        rank.exceptions = [ExceptionRecord(kind, message, frames, 1.0, TRAIN)]
    return Case(Evidence(world, ranks))


def test_a_port_that_cannot_be_had_for_want_of_descriptors_is_no_fault_of_the_port() -> None:
    said = (
        "DistNetworkError: The server socket has failed to bind. port: 26535, useIpv6: 0, "
        "code: -24, name: EMFILE, message: too many open files"
    )
    (finding,) = detect(ranks_that_raise(said))
    assert f"{finding.code} {finding.title}" == "DDP600 too-many-open-files"


@pytest.mark.parametrize("name", SAID)
def test_a_known_message_names_ranks_and_line(name: str) -> None:
    case = ranks_that_raise(SAID[name])
    (finding,) = detect(case)
    assert f"{finding.code} {finding.title}" == name
    assert finding.ranks == (0,)
    assert finding.place == TRAIN
    assert "{" not in finding.cause + finding.cure.text
    assert case.raised == []


@pytest.mark.parametrize("name", SAID)
def test_a_known_message_is_found_in_a_line_of_a_log(name: str) -> None:
    assert is_known(f"[rank0]: {SAID[name]}")


@pytest.mark.parametrize(
    "said",
    [
        "ValueError: bad sample",
        "KeyError: 'RANKING'",
        "FileNotFoundError: [Errno 2] No such file or directory: 'a.pt'",
        "AttributeError: 'Net' object has no attribute 'encode'",
        "RuntimeError: PytorchStreamReader failed locating file constants.pkl: file not found",
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied",
        "AssertionError: 3/4 of the clients were served",
    ],
)
def test_an_exception_of_the_users_own_is_left_alone(said: str) -> None:
    case = ranks_that_raise(said)
    assert list(detect(case)) == []
    assert len(case.raised) == 1
    assert not is_known(said)


def test_a_mismatch_of_shapes_alone_is_none_of_the_order() -> None:
    said = "RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running [...]. "
    said += "Collectives differ in the following aspects: \t Tensor Tensor shapes: 3vs 4"
    assert [finding.code for finding in detect(ranks_that_raise(said))] == ["DDP403"]


def test_a_full_disk_is_a_failed_save_only_within_a_save() -> None:
    said = "OSError: [Errno 28] No space left on device"
    assert [finding.code for finding in detect(ranks_that_raise(said))] == ["DDP511"]
    assert list(detect(ranks_that_raise(said, frames=(TRAIN,)))) == []


def test_ranks_that_say_the_same_are_one_finding() -> None:
    said = SAID["DDP600 out-of-memory"]
    (finding,) = detect(ranks_that_raise(said, said))
    assert finding.ranks == (0, 1)


def test_every_message_has_a_family_of_the_catalogue() -> None:
    assert {message.code[:4] for message in MESSAGES} <= {f"DDP{n}" for n in range(1, 8)}


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: f"{message.code}-{message.title}")
def test_what_a_message_quotes_is_what_its_pattern_captures(message: Message) -> None:
    pattern = re.compile(message.pattern)
    numbered, by_name = ["1"] * pattern.groups, dict.fromkeys(pattern.groupindex, "1")
    assert message.cause.format(*numbered, ranks="rank 0", **by_name)
    assert message.cure.format(*numbered, **by_name)


MESH = "RuntimeError: Gloo connectFullMesh failed with timed out connecting: Connection refused"


@pytest.mark.parametrize(("attempt", "found"), [(0, []), (1, ["restart-meets-old-addresses"])])
def test_ranks_that_meet_the_addresses_of_the_attempt_before_are_told_what_helps(
    attempt: int, found: list[str]
) -> None:
    case = ranks_that_raise(MESH, MESH)
    case.evidence.attempt = attempt
    findings = list(detect(case))
    assert [finding.title for finding in findings] == found
    assert all("TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1" in each.cure.text for each in findings)


def test_who_lost_a_peer_that_was_never_seen_proves_nothing_about_it() -> None:
    lost = "RuntimeError: Connection closed by peer [10.0.0.2]:1234"
    here, both = ranks_that_raise(lost), ranks_that_raise(lost)
    here.evidence.ranks[1].pid = 0
    (unseen,), (seen,) = detect(here), detect(both)
    assert (unseen.certainty, seen.certainty) == ("evidence", "proven")
    assert "Nothing was seen of rank 1 from here" in unseen.cause


def test_an_option_of_the_wrap_is_told_where_the_model_is_wrapped() -> None:
    said = "RuntimeError: Your training graph has changed in this iteration, e.g., one parameter"
    case = ranks_that_raise(said)
    wraps = Place(TRAIN.file, 3, "main")
    case.evidence.ranks[0].wrappers = [Wrapper(wraps, (), find_unused=False, static_graph=True)]
    (finding,) = detect(case)
    assert [each.place for each in finding.places] == [TRAIN, wraps]


def test_a_batch_of_one_is_told_where_its_loader_is_built() -> None:
    said = "ValueError: Expected more than 1 value per channel when training, got input size "
    case, other = (ranks_that_raise(f"{said}torch.Size([{n}, 12])") for n in (1, 2))
    built = Place(TRAIN.file, 5, "main")
    for each in (case, other):
        each.evidence.ranks[0].loaders = [loader(place=built)]
    (finding,) = detect(case)
    assert (finding.title, finding.ranks) == ("batch-of-one", (0,))
    assert [each.place for each in finding.places] == [TRAIN, built]
    assert list(detect(other)) == []


def test_who_stumbles_over_a_loader_without_batches_is_told_of_the_loader() -> None:
    built = Place(TRAIN.file, 5, "main")
    for drawn, ended, told in ((0, 0.5, True), (2, 0.5, False), (0, 0.3, False), (0, 2.0, False)):
        case = ranks_that_raise("ZeroDivisionError: division by zero")
        case.evidence.ranks[0].loaders = [
            loader(epoch(0.1, batches=3, ended=0.4)),
            loader(epoch(0.2, batches=drawn, ended=ended), place=built),
        ]
        (finding,) = general.detect(case)
        assert (built in [each.place for each in finding.places]) == told
        assert any("gave no batch" in each for each in finding.evidence) == told


def test_what_is_used_after_the_end_is_told_with_the_line_that_ended_it() -> None:
    said = SAID["DDP100 group-not-initialised"]
    case = ranks_that_raise(said, said)
    end = Place("/home/u/train.py", 20, "close")
    for rank in case.evidence.ranks:
        rank.left, rank.left_place = 0.5, end
    (finding,) = detect(case)
    assert [each.place for each in finding.places] == [TRAIN, end]
    assert "after the process group had been destroyed" in finding.cause


def test_who_leaves_only_then_has_never_joined_before() -> None:
    case = ranks_that_raise(SAID["DDP100 group-not-initialised"])
    case.evidence.ranks[0].left = 2.0
    (finding,) = detect(case)
    assert finding.place == TRAIN
    assert len(finding.places) == 1
