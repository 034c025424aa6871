"""`ddpdoctor config`: what it writes, what it leaves alone, and with which exit code."""

from pathlib import Path

import pytest
from test_plan import machine

from ddpdoctor import cli
from ddpdoctor.complaints import Complaint
from ddpdoctor.configure.cli import _host
from ddpdoctor.configure.trial import Outcome


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Facts of a machine, which it takes seconds to ask this one for."""
    monkeypatch.setattr("ddpdoctor.environment.facts.collect", machine)


@pytest.mark.usefixtures("_known")
def test_a_file_that_is_there_stays_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    Path("torchrun.sh").write_text("mine")
    assert cli.run(["config", "torchrun", "--nproc", "2", "--no-try"]) == 2
    assert Path("torchrun.sh").read_text() == "mine"
    assert "--force" in capsys.readouterr().err
    assert cli.run(["config", "torchrun", "--nproc", "2", "--no-try", "--force"]) == 0
    assert "--nproc-per-node=2" in Path("torchrun.sh").read_text()


@pytest.mark.usefixtures("_known")
def test_to_stdout_goes_the_file_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["config", "slurm", "--nproc", "3", "--no-try", "-o", "-"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("#!/bin/bash\n")
    assert "--ntasks-per-node=3" in said.out
    assert list(Path.cwd().iterdir()) == []


def test_an_ipv6_address_is_one_with_brackets_or_without() -> None:
    assert _host("[2001:db8::1]") == _host("2001:db8::1") == "2001:db8::1"
    for half in ("[2001:db8::1", "2001:db8::1]"):
        with pytest.raises(Complaint, match="--master"):
            _host(half)


@pytest.mark.usefixtures("_known")
def test_a_trial_that_fails_is_an_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failed = Outcome("fails", "2 ranks were to join, 1 did")
    monkeypatch.setattr("ddpdoctor.configure.trial.attempt", lambda *_: failed)
    assert cli.run(["config", "mpirun", "--nproc", "2"]) == 1
    assert "it failed: 2 ranks were to join, 1 did" in capsys.readouterr().out


def test_the_first_lines_say_how_this_very_file_is_started() -> None:
    assert cli.run(["config", "torchrun", "--nproc", "2", "--no-try", "-o", "my job.sh"]) == 0
    assert "Start it with: sh 'my job.sh' train.py" in Path("my job.sh").read_text()


@pytest.mark.usefixtures("_known")
@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["config", "torchrun", "--nproc", "0"], "--nproc"),
        (["config", "torchrun", "--nproc", "many"], "--nproc"),
        (["config", "torchrun", "--nodes", "0"], "--nodes"),
        (["config", "kubernetes", "--nproc", "2"], "--image"),
        (["config", "kubernetes", "--nproc", "2", "--image", "a", "--name", "My Job"], "--name"),
        (["config", "ray"], "ray"),
        (["config", "torchrun", "--nproc", "2", "--script", ""], "--script"),
        (["config", "slurm", "--nproc", "2", "--script", "a\nrm b.py"], "--script"),
        (["config", "torchrun", "--nodes", "2", "--master", "a\nb"], "--master"),
        (["config", "torchrun", "--nodes", "2", "--master", "a b"], "--master"),
        (["config", "torchrun", "--nodes", "2", "--master", "$(id)"], "--master"),
        (["config", "torchrun", "--nproc", "2", "-o", "missing/folder/file.sh"], "missing"),
        (["config", "torchrun", "--nproc", "2", "-o", "a\nb.sh"], "--output"),
    ],
)
def test_what_cannot_be_written_is_one_line(
    arguments: list[str], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run([*arguments, "--no-try"]) == 2
    said = capsys.readouterr()
    assert len(said.err.splitlines()) == 1
    assert word in said.err
    assert list(Path.cwd().iterdir()) == []
