"""What makes a command fail: the same options, with the same meaning, for all that report."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from ddpdoctor import cli
from ddpdoctor.attach.session import Seen
from ddpdoctor.catalog import Cure, Finding, Severity
from ddpdoctor.environment.model import EnvironmentReport
from ddpdoctor.probe.model import Measured
from ddpdoctor.report.lives import Attempt
from ddpdoctor.report.model import Report
from tests.test_cli import EMPTY_ENVIRONMENT, FakeCheck, fake  # noqa: F401

Found = tuple[Severity, ...]
Patch = pytest.MonkeyPatch


def finding(severity: Severity) -> Finding:
    return Finding(
        code="DDP419",
        title="one",
        severity=severity,
        certainty="evidence",
        ranks=(),
        places=(),
        cause="it is so",
        cure=Cure(text="Do."),
    )


def _report(command: str, found: Found, *, unseen: bool) -> Report:
    return Report(
        command=command,
        verdict="seen",
        findings=tuple(map(finding, found)),
        not_seen=("a host",) if unseen else (),
    )


def lint(patch: Patch, found: Found, *, unseen: bool) -> list[str]:
    """What hangs is certain, what loads onto one device likely, a port in the source harmless."""
    texts = {
        "error": "import torch.distributed as dist\nif dist.get_rank() == 0:\n    dist.barrier()\n",
        "warning": "import torch\n"
        "from torch.nn.parallel import DistributedDataParallel as DDP\n\n\n"
        "def build(net, path):\n    net.load_state_dict(torch.load(path))\n"
        "    return DDP(net.cuda())\n",
        "info": "import os\n\nimport torch.distributed as dist\n\n"
        'os.environ["MASTER_PORT"] = "29500"\ndist.init_process_group("gloo")\n',
    }
    Path("whole.py").write_text("x = 1\n")
    for severity in found:
        Path(f"{severity}.py").write_text(texts[severity])
    if unseen:
        Path("torn.py").write_text("def (:\n")
    return ["lint", "--no-cache"]


def diagnose(patch: Patch, found: Found, *, unseen: bool) -> list[str]:
    Path("job.log").write_text("[rank1]: Traceback (most recent call last):\n[rank1]: ValueError\n")
    report = _report("diagnose", found, unseen=unseen)
    read = report.model_copy(update={"attempts": (Attempt.model_construct(ranks=(None,)),)})
    patch.setattr("ddpdoctor.report.job.of_job", lambda *_, **__: read)
    patch.setattr("ddpdoctor.report.output.deliver", lambda *_: None)
    return ["diagnose", "job.log"]


def attach(patch: Patch, found: Found, *, unseen: bool) -> list[str]:
    report = _report("attach", found, unseen=unseen)
    patch.setattr("ddpdoctor.report.job.of_job", lambda *_, **__: report)
    patch.setattr("ddpdoctor.attach.session.attach", lambda *_: Seen((), (), ()))
    return ["attach"]


def run(patch: Patch, found: Found, *, unseen: bool) -> list[str]:
    patch.setattr("ddpdoctor.run.cli._report", lambda *_: _report("run", found, unseen=unseen))
    return ["run", "--", "true"]


def env(patch: Patch, found: Found, *, unseen: bool) -> list[str]:
    report = EnvironmentReport(environment=EMPTY_ENVIRONMENT, findings=tuple(map(finding, found)))
    patch.setattr("ddpdoctor.environment.examine", lambda **_: report)
    patch.setattr("ddpdoctor.environment.telling.not_checked", lambda _: int(unseen))
    return ["env"]


def probe(patch: Patch, found: Found, *, unseen: bool) -> list[str]:
    patch.setattr("ddpdoctor.probe.cli._perform", lambda *_: (Measured.model_construct(), []))
    patch.setattr("ddpdoctor.probe.judge.judge", lambda _: [])
    patch.setattr("ddpdoctor.probe.telling.told", lambda _: _report("probe", found, unseen=unseen))
    patch.setattr("ddpdoctor.probe.judge.unchecked", lambda _: ["slow"] if unseen else [])
    return ["probe"]


COMMANDS: tuple[Callable[..., list[str]], ...] = (lint, diagnose, attach, run, env, probe)


@pytest.mark.parametrize("command", [*(each.__name__ for each in COMMANDS), "check"])
def test_every_command_that_reports_says_alike_what_makes_it_fail(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run([command, "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert (
        "--fail-on <never|error|warning|info|unchecked> Exit with 1 for a finding as grave as "
        "this, or graver; unchecked: for any, and with 3 for what could not be checked. [default: "
    ) in said
    assert "--strict The same as --fail-on unchecked." in said
    assert re.search(r"Exit code: .*--fail-on", said)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("found", "unseen", "codes"),
    [
        ((), False, {"never": 0, "unchecked": 0}),
        ((), True, {"never": 0, "error": 0, "warning": 0, "info": 0, "unchecked": 3}),
        (("info",), False, {"never": 0, "error": 0, "warning": 0, "info": 1, "unchecked": 1}),
        (("info",), True, {"never": 0, "warning": 0, "info": 1, "unchecked": 1}),
        (("warning",), False, {"never": 0, "error": 0, "warning": 1, "info": 1, "unchecked": 1}),
        (("info", "error"), True, {"never": 0, "error": 1, "warning": 1, "unchecked": 1}),
    ],
)
def test_a_finding_fails_every_command_from_the_same_level_on(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: Callable[..., list[str]],
    found: Found,
    unseen: bool,
    codes: dict[str, int],
) -> None:
    monkeypatch.chdir(tmp_path)
    name, *rest = command(monkeypatch, found, unseen=unseen)
    for level, code in codes.items():
        assert cli.run([name, "--fail-on", level, *rest]) == code, level
    assert cli.run([name, "--strict", *rest]) == codes["unchecked"]


@pytest.mark.parametrize(
    ("verdict", "codes"),
    [
        ({}, {"never": 0, "error": 0, "unchecked": 0}),
        ({"fix": "fails"}, {"never": 0, "error": 1, "warning": 1, "unchecked": 1}),
        ({"fix": "not checked"}, {"never": 0, "warning": 0, "info": 0, "unchecked": 3}),
    ],
)
def test_a_problem_fails_check_as_an_error(
    fake: FakeCheck,  # noqa: F811
    verdict: dict[str, str],
    codes: dict[str, int],
) -> None:
    fake.statuses |= verdict  # type: ignore[arg-type]
    for level, code in codes.items():
        assert cli.run(["check", "--fail-on", level]) == code, level
    assert cli.run(["check", "--strict"]) == codes["unchecked"]
