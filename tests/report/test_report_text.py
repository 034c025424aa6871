"""The report that a person reads."""

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_samples import VERDICTS, finding, report_of, verdict

from ddpdoctor.catalog import Cure, Kind, Status
from ddpdoctor.check.telling import CheckReport, told
from ddpdoctor.evidence import named
from ddpdoctor.report import output
from ddpdoctor.report.model import render
from ddpdoctor.report.output import Page
from ddpdoctor.report.words import cure

ANSI = re.compile(r"\x1b\[[0-9;]*m")


def rows(text: str) -> str:
    """The text without its line breaks, to look for sentences that are wrapped somewhere."""
    return " ".join(text.split())


def test_a_recognised_failure_shows_ranks_line_and_cause(report: CheckReport) -> None:
    text = rows(render(told(report), "text"))
    assert (
        "broken reproduced Set up distributed training from the dict that came out of the YAML "
        "file. recognised: ranks 0-3 at dict_config.py:31: 'dict' object has no attribute"
    ) in text


def test_a_race_says_in_how_many_launches_it_showed(report: CheckReport) -> None:
    text = rows(render(told(report), "text"))
    assert "recognised in 3 of 5 launches: rank 3 at checkpoint_race.py:52" in text
    assert "in 2 of 5 launches: rank 1 raised EOFError" in text
    assert "in 0 of 5 launches: all 4 ranks ended well" in text


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        ("rank 3 read a.pt", "the same failure, rank 3 at a.py:9"),
        ("rank 3 read b.pt", "rank 3 at a.py:9: rank 3 read b.pt"),
    ],
)
def test_advice_that_fails_as_the_broken_form_does_says_so_and_no_more(
    cause: str, said: str
) -> None:
    first = finding("DDP501", "checkpoint-race", (2,), "a.py", 5, "raised", "rank 2 read a.pt")
    again = finding("DDP501", "checkpoint-race", (3,), "a.py", 9, "raised", cause)
    report = report_of(
        verdict("DDP501", "broken", "a", "recognised", "Break.", "seen", first),
        verdict("DDP501", "documented", "b", "fails", "Try.", "seen", again),
    )
    assert f"DOES NOT HOLD Try. {said} What to do" in rows(render(told(report), "text"))
    assert "recognised: rank 2 at a.py:5: rank 2 read a.pt" in rows(render(told(report), "text"))


def test_a_failure_that_was_not_recognised_says_what_was_expected(report: CheckReport) -> None:
    text = rows(render(told(report), "text"))
    assert "NOT RECOGNISED: expected DDP201 on ranks 0-3, the diagnosis said DDP200" in text


def test_advice_shows_what_was_seen_and_which_document_gives_it(report: CheckReport) -> None:
    text = rows(render(told(report), "text"))
    assert (
        "DOES NOT HOLD Let rank 0 check that the file exists and is not empty, then a barrier. "
        "[004 fix 2] in 2 of 5 launches: rank 1 raised EOFError at checkpoint_race.py:74: half a "
        "file is not empty either"
    ) in text
    assert "holds in part Wrap with find_unused_parameters=True. [000 error 3] it runs, but" in text


def test_what_to_do_stands_below_for_each_pitfall_with_a_row_that_fails(
    report: CheckReport,
) -> None:
    to_do = rows(render(told(report), "text").split("What to do")[1])
    assert "DDP501 Write to a unique temporary file" in to_do
    assert "$ ddpdoctor explain DDP504" in to_do
    assert "DDP101" not in to_do


def test_a_problem_asks_for_a_report(report: CheckReport) -> None:
    assert "$ ddpdoctor check --select DDP201 --run-dir DIR" in render(told(report), "text")


@pytest.mark.parametrize(
    ("kind", "status", "title"),
    [
        ("broken", "misdiagnosed", "dict-config is not recognised"),
        ("fix", "fails", "dict-config is not mended by its fix"),
    ],
)
def test_a_problem_without_a_finding_is_no_proof_of_the_pitfall(
    kind: Kind, status: Status, title: str
) -> None:
    (found,) = told(report_of(verdict("DDP101", kind, "it", status, "Try.", "Seen."))).findings
    assert (found.title, found.certainty) == (title, "evidence")


def test_a_healthy_report_has_nothing_to_do(healthy: CheckReport) -> None:
    text = render(told(healthy), "text")
    assert "What to do" not in text
    assert "0 problems, 0 not checked" in text


def test_the_summary_says_what_became_of_the_advice(report: CheckReport) -> None:
    text = rows(render(told(report), "text"))
    assert (
        "Of 6 pieces of advice in circulation, 2 hold, 2 hold in part and 2 do not, "
        "on this machine with torch 2.13.0."
    ) in text
    assert "2 problems, 1 not checked" in text
    assert "Not checked: DDP504 longer_nccl_timeout: needs NCCL, and there is no GPU" in text


def test_one_piece_of_advice_is_spoken_of_in_the_singular(healthy: CheckReport) -> None:
    text = rows(render(told(healthy), "text"))
    assert "Of 1 piece of advice in circulation, 1 holds, 0 hold in part and 0 do not" in text


def test_advice_that_promises_no_cure_is_counted_apart() -> None:
    aid = verdict("DDP101", "documented", "a", "aid", "NCCL_DEBUG=INFO.", "it hangs")
    text = rows(render(told(report_of(VERDICTS[0], aid)), "text"))
    assert "advice an aid, no cure NCCL_DEBUG=INFO. it hangs" in text
    assert "hold in part, 1 is an aid and no cure, and 0 do not, on this machine" in text
    assert "What to do" not in text


def test_where_no_advice_was_tried_no_sentence_speaks_of_it() -> None:
    assert "advice in circulation" not in render(told(report_of(VERDICTS[0], VERDICTS[2])), "text")


@given(
    width=st.integers(40, 100),
    summary=st.text(max_size=200),
    evidence=st.text(max_size=200),
    cause=st.text(max_size=200),
)
def test_no_text_makes_a_line_too_long_or_moves_the_cursor(
    width: int, summary: str, evidence: str, cause: str
) -> None:
    named = finding("DDP101", "dict-config", (2,), "a.py", 1, "raised", cause)
    report = report_of(
        verdict("DDP101", "broken", "a", "recognised", summary, evidence, named),
        verdict("DDP101", "documented", "b", "fails", summary, evidence, source=cause),
        verdict("DDP101", "fix", "c", "not checked", summary, evidence),
    )
    text = render(told(report), "text", Page(width))
    lines = text.removesuffix("\n").split("\n")
    assert max(map(_columns, lines)) <= width
    assert all(line == line.rstrip() for line in lines)
    assert text.replace("\n", "").isprintable()


def _columns(line: str) -> int:
    from rich.cells import cell_len

    return cell_len(line)


def test_colour_adds_nothing_but_colour(report: CheckReport) -> None:
    coloured = render(told(report), "text", Page(colour=True))
    assert ANSI.search(coloured)
    plain = [line.rstrip() for line in ANSI.sub("", coloured).splitlines()]
    assert plain == render(told(report), "text").splitlines()


def test_ascii_keeps_the_layout(report: CheckReport) -> None:
    class Ascii(io.StringIO):
        encoding = "ascii"  # type: ignore[assignment]

    text = render(told(report), "text")
    stream = Ascii()
    output.write(stream, text)
    assert stream.getvalue().isascii()
    assert list(map(len, stream.getvalue().splitlines())) == list(map(len, text.splitlines()))
    assert "x advice DOES NOT HOLD" in rows(stream.getvalue())
    assert "?" not in stream.getvalue().replace("  ? advice  not checked", "")


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ((2,), "rank 2"),
        ((0, 1, 2, 3), "ranks 0-3"),
        ((7, 0, 1), "ranks 0, 1, 7"),
        ((1, 3), "ranks 1, 3"),
    ],
)
def test_ranks_are_told_as_spans(numbers: tuple[int, ...], words: str) -> None:
    assert named(numbers) == words


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Raise it", "Raise it."),
        ("Raise it (ulimit -n 65536)", "Raise it (ulimit -n 65536)."),
        ("Write `dist.barrier()`", "Write `dist.barrier()`."),
        ("Look there.", "Look there."),
        ("Try this:", "Try this:"),
        ("", ""),
    ],
)
def test_what_to_do_ends_as_a_sentence_does(text: str, told: str) -> None:
    assert (
        cure(
            finding("DDP401", "", (0,), "a.py", 1, "", "").model_copy(
                update={"cure": Cure(text=text)}
            )
        )
        == told
    )
