"""No secret that a rank was told gets into what `probe` shows or writes."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from measurements import cluster

from ddpdoctor import cli
from ddpdoctor.environment.redaction import first_line, safe_line
from ddpdoctor.probe import rank as probing
from ddpdoctor.probe import telling
from ddpdoctor.probe.finding import finding
from ddpdoctor.probe.judge import judge
from ddpdoctor.probe.model import Check, ProbeReport
from ddpdoctor.report.formats import ReportFormat
from ddpdoctor.report.model import render

SECRETS = st.text(
    st.characters(codec="utf-8", exclude_categories=("Z", "C")), min_size=8, max_size=30
).filter(lambda text: len(set(text)) > 5)
SHAPES = ("http://ada:{}@proxy", "ada:{}@host", "x{}y", "token={}", "Bearer {}")
NAMES = ("NCCL_ALGO", "GLOO_SOCKET_IFNAME", "NCCL_TOKEN", "TORCH_NCCL_TRACE", "NCCL_NET")


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(SECRETS, st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(SHAPES)), min_size=1))
def test_no_secret_of_a_rank_is_in_any_format(secret: str, told: list[tuple[str, str]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MY_API_KEY", secret)
        for name, shape in told:
            patch.setenv(name, shape.format(secret))
        words = first_line(RuntimeError(f"no device {told[0][1].format(secret)}\nmore {secret}"))
        wrong = Check(
            operation="all_reduce", dtype="int32", state="wrong", detail=words, ranks=(0,)
        )
        measured = cluster(3, 1, checks=(wrong,))
        one, *others = measured.ranks
        one = one.model_copy(update={"variables": probing._must_agree()})
        measured = measured.model_copy(update={"ranks": (one, *others)})
        lost = finding("DDP723", "error", safe_line(f"rank 1: {secret}"), "Look.", ranks=(1,))
    for report in (
        ProbeReport(measured=measured, findings=tuple(judge(measured))),
        ProbeReport(measured=None, findings=(lost,)),
    ):
        for form in ReportFormat:
            assert secret not in render(telling.told(report), form)
            assert json.dumps(secret)[1:-1] not in render(telling.told(report), form)


@pytest.mark.parametrize(
    "command",
    [
        ["probe", "--against", "https://ada:{}@host/old.json"],
        ["probe", "--nproc", "1", "-o", "no/password={}/x"],
        ["env", "--checkpoints", "https://ada:{}@host"],
        ["env", "--compare", "https://ada:{}@host", "{}"],
        ["config", "torchrun", "--master", "ada:{}@host"],
        ["config", "torchrun", "-o", "no/token={}/x"],
    ],
)
def test_no_secret_of_the_command_line_is_in_a_complaint(
    command: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HUB_TOKEN", "s3cr3t-Zq9")
    assert cli.run([word.format("s3cr3t-Zq9") for word in command]) == 2
    said = capsys.readouterr()
    assert "***" in said.err
    assert "s3cr3t" not in said.out + said.err


def test_no_secret_is_in_what_a_fault_of_ours_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise KeyError("http://ada:s3cr3t-Zq9@host")

    monkeypatch.setattr("ddpdoctor.environment.facts.collect", fail)
    assert cli.run(["env"]) == 2
    said = capsys.readouterr().err
    assert "a fault of ours" in said
    assert "s3cr3t" not in said
