"""Plain logs: most were written by real runs, those of NCCL follow public reports."""

import io
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ddpdoctor import cli
from ddpdoctor.catalog import Finding
from ddpdoctor.postmortem.material import Material, NothingToRead
from ddpdoctor.postmortem.reading import read_stream

LOGS = Path(__file__).parent / "logs"
EXPECTED = {
    "chained-exceptions": ("DDP400", "exception", (0, 1), 41),
    "dataloader-bus-error": ("DDP604", "shared-memory-exhausted", (), 40),
    "double-init": ("DDP102", "double-init", (0, 1), 16),
    "exit-without-words": ("DDP400", "left-without-words", (1,), None),
    "gloo-timeout": ("DDP400", "missing-call", (), 35),
    "killed-without-summary": ("DDP400", "rank-died", (5,), None),
    "local-rank-argument": ("DDP112", "local-rank-argument", (), None),
    "module-prefix": ("DDP508", "module-prefix", (0, 1), 38),
    "nccl-all-came": ("DDP400", "collective-never-completed", (), None),
    "nccl-one-rank-missing": ("DDP400", "missing-call", (0,), None),
    "nccl-other-collective": ("DDP400", "deadlock", (0,), None),
    "no-launcher": ("DDP103", "launched-without-launcher", (), 14),
    "one-of-four-joined": ("DDP105", "wrong-world-size", (), 12),
    "one-rank-killed": ("DDP400", "rank-died", (1,), None),
    "one-rank-raises": ("DDP400", "exception", (1,), 22),
    "premature-sampler": ("DDP201", "premature-sampler", (0, 1), 11),
    "segfault": ("DDP400", "rank-died", (1,), None),
    "spawn-kill": ("DDP400", "rank-died", (1,), None),
    "spawn-pickle": ("DDP117", "unpicklable-spawn-arguments", (), 49),
    "spawn-raise": ("DDP400", "exception", (1,), 22),
    "srun-out-of-memory": ("DDP600", "out-of-memory", (0,), 12),
    "unused-parameters": ("DDP301", "unused-parameters", (0, 1), 19),
}


def material_of(text: str | bytes) -> Material:
    return read_stream(io.BytesIO(text.encode() if isinstance(text, str) else text))


def findings_of(text: str | bytes) -> list[Finding]:
    return material_of(text).judge()


def test_every_sample_has_an_expectation() -> None:
    assert {log.stem for log in LOGS.glob("*.log")} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_the_first_cause_is_told_from_what_followed(name: str) -> None:
    (finding,) = findings_of((LOGS / f"{name}.log").read_bytes())
    line = finding.place.line if finding.place else None
    assert (finding.code, finding.title, finding.ranks, line) == EXPECTED[name]
    assert finding.certainty == "evidence"


def test_victims_are_told_as_consequences() -> None:
    (finding,) = findings_of((LOGS / "one-rank-raises.log").read_bytes())
    assert "bad sample 17" in finding.cause
    assert [line.partition(": ")[0] for line in finding.consequences] == [
        "rank 0 then raised RuntimeError"
    ]


def test_a_rank_that_left_without_words_is_told_with_its_victims() -> None:
    (finding,) = findings_of((LOGS / "exit-without-words.log").read_bytes())
    assert finding.consequences == ("rank 0 then raised RuntimeError at train.py:33",)


def test_of_unused_parameters_a_log_has_the_indices_and_not_why() -> None:
    (finding,) = findings_of((LOGS / "unused-parameters.log").read_bytes())
    assert finding.cause == (
        "2 parameters got no gradient, dead, frozen since or skipped by a branch: parameter 2, "
        "parameter 3."
    )


def test_a_watchdogs_timeout_follows_from_an_exception_elsewhere() -> None:
    raised = (LOGS / "one-rank-raises.log").read_text()
    watchdog = (LOGS / "nccl-one-rank-missing.log").read_text().splitlines()[1]
    (finding,) = findings_of(f"{watchdog}\n{raised}")
    assert (finding.title, finding.ranks) == ("exception", (1,))
    assert "rank 3 then waited in all_reduce #469508, until its timeout of 1800 s" in (
        finding.consequences
    )


def test_a_timeout_names_who_waited_and_who_did_not_come() -> None:
    (finding,) = findings_of((LOGS / "nccl-one-rank-missing.log").read_bytes())
    assert [place.ranks for place in finding.places] == [(1, 2, 3)]
    assert finding.places[0].waits_for == (0,)


def test_of_several_timeouts_of_a_rank_the_oldest_call_counts() -> None:
    lines = (LOGS / "nccl-all-came.log").read_text().splitlines()
    for order in (lines, lines[::-1]):
        (finding,) = findings_of("\n".join(order))
        assert "ranks 0, 1 all came to all_reduce #96117" in finding.cause


def watchdog(rank: int, seq: int, op: str, group: int, within: int, enqueued: int) -> str:
    """The two lines of one timeout, as torch 2.6 writes them; `within` is the rank in the group."""
    source = f"[rank{rank}]:[E318 07:39:53.792630246 ProcessGroupNCCL.cpp"
    return (
        f"{source}:616] [Rank {within}] Watchdog caught collective operation timeout: WorkNCCL("
        f"SeqNum={seq}, OpType={op}, NumelIn=8, NumelOut=8, Timeout(ms)=600000) ran for 600086 "
        f"milliseconds before timing out.\n"
        f"{source}:1785] [PG ID {group} PG GUID {group} Rank {within}] Exception (either an error "
        f"or timeout) detected by watchdog at work: {seq}, last enqueued NCCL work: {enqueued}, "
        f"last completed NCCL work: {seq - 1}.\n"
    )


def test_timeouts_in_different_groups_are_not_compared() -> None:
    pair = watchdog(4, 610, "COALESCED", 2, 0, 616) + watchdog(6, 610, "COALESCED", 2, 1, 612)
    other = watchdog(1, 99, "ALLREDUCE", 3, 0, 99)
    (finding,) = findings_of(pair + other)
    assert (finding.title, finding.ranks) == ("timeout-in-a-group", ())
    assert "ranks 4, 6 waited in coalesced #610 of group 2" in finding.cause


def test_a_rank_that_had_issued_fewer_calls_is_the_missing_one() -> None:
    """Rank 1 gave up too, but in an older call of another group."""
    ahead = watchdog(0, 50, "ALLREDUCE", 0, 0, 52) + watchdog(2, 50, "ALLREDUCE", 0, 2, 51)
    (finding,) = findings_of(ahead + watchdog(1, 7, "ALLGATHER", 5, 0, 7))
    assert (finding.title, finding.ranks) == ("missing-call", (1,))


def test_a_monitored_barrier_names_the_rank_itself() -> None:
    said = "RuntimeError: Rank 3 failed to pass monitoredBarrier in 2000 ms"
    (finding,) = findings_of("\n".join(f"[rank0]: {line}" for line in (*TRACE[:3], said)))
    assert (finding.title, finding.ranks) == ("missing-call", (3,))


def test_ranks_are_not_made_up_where_the_log_names_none() -> None:
    found = material_of((LOGS / "no-launcher.log").read_bytes())
    assert found.attempts[0][1].ranks == []
    assert any("does not say which ranks" in line for line in found.not_seen)
    assert all(not place.ranks for place in found.judge()[0].places)


def test_every_log_is_said_to_tell_little() -> None:
    (line,) = material_of((LOGS / "double-init.log").read_bytes()).not_seen
    assert "ddpdoctor run" in line


def test_a_log_of_a_run_that_went_well_yields_nothing() -> None:
    lines = [f"epoch {n}: loss 0.1, error rate 0.2, 3 exceptions filtered\n" for n in range(2000)]
    found = material_of("".join(lines))
    assert found.judge() == []
    assert "no traceback" in found.not_seen[0]


def test_a_warning_that_a_library_prints_with_a_traceback_word_is_no_finding() -> None:
    text = "Traceback (most recent call last): not really\nepoch 1\nepoch 2\n"
    assert findings_of(text) == []


TRACE = [
    "Traceback (most recent call last):",
    '  File "/home/u/train.py", line 7, in main',
    "    step()",
    "ValueError: bad",
]


def test_tracebacks_of_ranks_that_wrote_at_once_are_put_together_again() -> None:
    lines = [f"[rank{rank}]: {line}" for line in TRACE for rank in (2, 0)]
    (finding,) = findings_of("\n".join(lines))
    assert finding.ranks == (0, 2)
    assert finding.place is not None
    assert (finding.place.file, finding.place.line) == ("/home/u/train.py", 7)


@pytest.mark.parametrize(
    "mark",
    [
        "[rank3]: ",
        "[default3]:",
        "[default3]:[rank3]: ",
        "[1,3]<stderr>:",
        "3: ",
        "2026-01-02T03:04:05.678901Z [rank3]: ",
        "2026-01-02T03:04:05.678901Z stderr F [rank3]: ",
        "node7.cluster [stderr] [rank3]: ",
    ],
)
def test_the_marks_of_every_launcher_tell_the_rank(mark: str) -> None:
    (finding,) = findings_of("\n".join(f"{mark}{line}" for line in TRACE))
    assert finding.ranks == (3,)


def test_colours_carriage_returns_and_progress_bars_are_read_through() -> None:
    bar = "\r 10%|#    | 1/10\r 20%|##   | 2/10\r\n"
    text = bar + "\r\n".join(f"\x1b[31m[rank1]: {line}\x1b[0m" for line in TRACE)
    (finding,) = findings_of(text)
    assert finding.ranks == (1,)
    assert "ValueError: bad" in finding.cause


def test_a_log_that_was_cut_within_a_traceback_is_read_as_far_as_it_goes() -> None:
    whole = (LOGS / "one-rank-raises.log").read_bytes()
    named = {(one.code, one.ranks) for one in findings_of(whole)}
    assert named
    said = [
        {(one.code, one.ranks) for one in findings_of(whole[:end])}
        for end in range(97, len(whole), 97)
    ]
    assert said[0] == set()
    assert all(len(found) <= len(named) for found in said)
    assert said[-1] == named


@pytest.mark.parametrize(
    ("number", "damaged"),
    [("Timeout(ms)=1800000", "Timeout(ms)=q800000"), ("line 51", f"line {10**24}")],
)
def test_a_damaged_number_costs_its_line_alone(number: str, damaged: str) -> None:
    raised = (LOGS / "one-rank-raises.log").read_text()
    watchdog = (LOGS / "nccl-one-rank-missing.log").read_text().splitlines()[1]
    whole = f"{watchdog}\n{raised}"
    assert number in whole
    (finding,) = findings_of(whole.replace(number, damaged, 1))
    assert (finding.title, finding.ranks) == ("exception", (1,))


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"", "is empty"), (bytes(range(256)) * 40, "is no text"), (b"\0" * 9000, "is no text")],
)
def test_what_is_no_log_is_refused_in_one_line(content: bytes, says: str) -> None:
    with pytest.raises(NothingToRead, match=says) as caught:
        material_of(content)
    assert "\n" not in str(caught.value)


def test_prose_is_no_job_that_went_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prose = tmp_path / "prose.txt"
    prose.write_text("It was the best of times.\n")
    assert cli.run(["diagnose", str(prose)]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert len(told.err.splitlines()) == 1
    assert f"in {prose} there is no traceback" in told.err


def test_a_traceback_is_found_behind_much_that_does_not_matter() -> None:
    class Stream(io.RawIOBase):
        """A hundred megabytes of progress, then a failure; in memory there is never a tenth."""

        def __init__(self) -> None:
            self.blocks = 100
            self.end = "\n".join(f"[rank1]: {line}" for line in TRACE).encode()
            self.largest = 0

        def read(self, size: int = -1) -> bytes:
            self.largest = max(self.largest, size)
            self.blocks -= 1
            if self.blocks >= 0:
                return b"step 1 of 100, loss 0.25\n" * 40_000
            end, self.end = self.end, b""
            return end

    stream = Stream()
    (finding,) = read_stream(stream).judge()  # type: ignore[arg-type]
    assert finding.ranks == (1,)
    assert stream.largest <= 1 << 20


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (
            "[W] The server socket has failed to bind (errno: 98 - EADDRINUSE).",
            "DDP104",
        ),
        ("[E] The client socket has timed out after 600000ms while trying to connect", "DDP108"),
        ("train.py: error: the following arguments are required: --local_rank", "DDP112"),
        ("[E] Timed out after 901 seconds waiting for clients. 3/8 clients joined.", "DDP105"),
        ("RuntimeError: CUDA error: invalid device ordinal", "DDP106"),
        ("ERROR: Unexpected bus error in worker: insufficient shared memory (shm).", "DDP604"),
    ],
)
def test_a_message_that_stands_alone_among_progress_is_found(line: str, code: str) -> None:
    progress = "".join(f"step {n}\n" for n in range(5000))
    assert [finding.code for finding in findings_of(f"{progress}{line}\n{progress}")] == [code]


def test_where_there_is_a_traceback_a_lone_message_is_not_the_cause() -> None:
    lone = "[W] The server socket has failed to listen on [::]:29500 (errno: 98 - EADDRINUSE)"
    (finding,) = findings_of("\n".join([lone, *TRACE]))
    assert finding.title == "exception"


def test_a_traceback_is_read_on_behind_the_lines_of_others() -> None:
    begun = [f"[rank0]: {line}" for line in TRACE[:2]]
    ended = [f"[rank0]: {line}" for line in TRACE[2:]]
    (finding,) = findings_of("\n".join([*begun, *["noise"] * 500, *ended]))
    assert finding.ranks == (0,)


def test_a_line_without_end_is_not_kept() -> None:
    assert findings_of("x" * (9 << 20) + "\n" + "\n".join(TRACE))[0].title == "exception"


@pytest.mark.parametrize("log", sorted(LOGS.glob("*.log")), ids=lambda log: log.stem)
def test_no_number_breaks_the_reader(log: Path) -> None:
    text = log.read_text()
    numbers = {match[0]: match.span() for match in re.finditer(r"[\w .(:]{0,12}?\d+", text)}
    for begin, end in numbers.values():
        before = text[begin:end].rstrip("0123456789")
        for damaged in (10**24, 2**63, 10**9):
            for finding in findings_of(f"{text[:begin]}{before}{damaged}{text[end:]}"):
                assert finding.certainty == "evidence"


ALL_LINES = [line for log in sorted(LOGS.glob("*.log")) for line in log.read_text().splitlines()]


@given(st.lists(st.sampled_from(ALL_LINES) | st.text(max_size=30), max_size=60))
@settings(max_examples=200, deadline=None)
def test_no_order_of_lines_breaks_the_reader(lines: list[str]) -> None:
    for finding in findings_of("\n".join(["begin", *lines])):
        assert finding.certainty == "evidence"
