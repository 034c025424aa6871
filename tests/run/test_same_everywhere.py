"""One incident reads the same, whichever command tells it, in whichever format."""

import html
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from ddpdoctor.report.formats import ReportFormat
from ddpdoctor.report.model import Report, render
from tests.patience import ENDLESS
from tests.run.conftest import HERE, environment

Ended = Callable[..., tuple[int, str, str]]

EXCHANGE = """import pytest
import torch
import torch.distributed as dist


def exchange():
    if dist.get_rank() == 0:
        dist.barrier()  # the barrier
    dist.all_reduce(torch.ones(1))


@pytest.mark.distributed(nproc=2, timeout=60)
def test_exchange():
    exchange()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    exchange()
"""
SHORT = {
    ("diagnose in concise", "title"),
    ("diagnose in concise", "remedy"),
    ("diagnose in gitlab", "remedy"),
    ("diagnose in perfetto", "remedy"),
}
"""What has no room for more than a line."""
_TAG = re.compile(r"</?(?!stdin|locals)[a-z][^<>]*>")


def plain(said: str) -> str:
    """The words alone: neither how lines are broken nor how a format marks and escapes them."""
    said = html.unescape(_TAG.sub(" ", said)).replace("\\n", " ").replace("\\", "")
    said = re.sub(r"%0A|^E ", " ", said, flags=re.MULTILINE)
    return re.sub(r"\W+", " ", said)


def test_an_incident_reads_the_same_in_every_command_and_format(
    ended: Ended, tmp_path: Path
) -> None:
    script = tmp_path / "test_exchange.py"
    script.write_text(EXCHANGE)
    command = ["python", str(HERE / "launch.py"), "2", str(script)]
    status, _, err = ended(command, "--format", "json", "-o", "run.json", "--run-dir", "runs")
    assert status == 1, err
    run = json.loads((tmp_path / "run.json").read_text())
    (finding,) = run["findings"]
    place = f"{script.name}:{finding['places'][0]['place']['line']}"
    told = {"run": plain(err)}
    again = subprocess.run(
        [sys.executable, "-m", "ddpdoctor", "diagnose", run["run_dir"], "--format", "json"],
        cwd=tmp_path,
        env=environment(tmp_path, {}),
        capture_output=True,
        text=True,
        timeout=ENDLESS,
    )
    report = Report.model_validate_json(again.stdout)
    told |= {f"diagnose in {each}": plain(render(report, each)) for each in ReportFormat}
    in_tests = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", script.name],
        cwd=tmp_path,
        env=environment(tmp_path, {"COLUMNS": "100"}),
        capture_output=True,
        text=True,
        timeout=ENDLESS,
    )
    told["pytest"] = plain(in_tests.stdout)
    said = {
        "code": finding["code"],
        "title": plain(finding["title"]),
        "cause": plain(finding["cause"]),
        "place": plain(place),
        "remedy": plain(finding["cure"]["text"]),
    }
    missing = {
        (name, what)
        for name, text in told.items()
        for what, words in said.items()
        if words.strip() not in text
    }
    assert missing == SHORT
    assert report.findings[0].model_dump(mode="json") == finding
