"""`env --compare`: what differs between hosts is named, and what must differ is not."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ddpdoctor import cli
from ddpdoctor.environment.compare import Host, differences, read
from ddpdoctor.environment.model import Environment, EnvironmentReport, HostName, Torch
from ddpdoctor.environment.telling import told
from ddpdoctor.report.model import Unreadable, render

With = Callable[..., Environment]


def host(environment_with: With, name: str, environ: dict[str, str], **facts: Any) -> Host:
    named = HostName(name=name, addresses=("192.0.2.7",), loopback=False)
    return Host(name, environment_with(environ, hostname=named, **facts))


def codes(*hosts: Host) -> list[tuple[str, str]]:
    return [(one.code, one.severity) for one in differences(hosts)]


def test_hosts_that_are_alike_differ_in_nothing(environment_with: With) -> None:
    alike = {"NCCL_DEBUG": "WARN", "MASTER_ADDR": "192.0.2.7", "MASTER_PORT": "29500"}
    first = host(environment_with, "a", {**alike, "RANK": "0", "SLURM_NODEID": "0"})
    second = host(environment_with, "b", {**alike, "RANK": "4", "SLURM_NODEID": "1"})
    assert codes(first, second) == []


def test_another_torch_on_one_of_three_hosts_is_named_with_that_host(
    environment_with: With,
) -> None:
    hosts = [host(environment_with, name, {}) for name in "abc"]
    torch = hosts[1].environment.torch
    assert isinstance(torch, Torch)
    older = torch.model_copy(update={"version": "2.9.1"})
    hosts[1] = host(environment_with, "b", {}, torch=older)
    found = differences(hosts)
    assert [(one.code, one.severity) for one in found] == [("DDP110", "error")]
    assert "2.9.1: b" in found[0].evidence
    assert "2.13.0+cpu: a, c" in found[0].evidence


def test_a_variable_that_one_host_lacks_is_named(environment_with: With) -> None:
    hosts = [
        host(environment_with, "a", {"NCCL_ALGO": "Ring"}),
        host(environment_with, "b", {}),
    ]
    assert codes(*hosts) == [("DDP719", "warning")]
    assert differences(hosts)[0].evidence == ("Ring: a", "not set: b")


def test_interfaces_may_be_called_otherwise_on_each_host(environment_with: With) -> None:
    hosts = [
        host(environment_with, "a", {"NCCL_SOCKET_IFNAME": "eth0"}),
        host(environment_with, "b", {"NCCL_SOCKET_IFNAME": "ens5"}),
    ]
    assert codes(*hosts) == [("DDP719", "info")]


def test_what_could_not_be_found_out_on_a_host_is_no_difference(environment_with: With) -> None:
    from ddpdoctor.environment.model import Unknown

    lost = Unknown(unknown="permission denied")
    hosts = [
        host(environment_with, "a", {}),
        host(environment_with, "b", {}, torch=lost, cpus=lost, kernel=lost, clock=lost),
    ]
    assert codes(*hosts) == []


def written(folder: Path, one: Host) -> Path:
    report = EnvironmentReport(environment=one.environment, findings=())
    path = folder / f"{one.name}.json"
    path.write_text(render(told(report), "json"))
    return path


def test_files_of_hosts_with_one_name_are_told_apart_by_their_own(
    environment_with: With, tmp_path: Path
) -> None:
    first = written(tmp_path, host(environment_with, "node", {}))
    second = first.with_name("copy.json")
    second.write_bytes(first.read_bytes())
    third = written(tmp_path, host(environment_with, "other", {}))
    assert [one.name for one in read([first, second, third])] == ["node.json", "copy.json", "other"]


def test_the_command_tells_it_in_every_format(
    environment_with: With, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [
        str(written(tmp_path, host(environment_with, name, environ)))
        for name, environ in (("a", {"NCCL_PROTO": "LL"}), ("b", {"NCCL_PROTO": "Simple"}))
    ]
    for chosen in ("text", "json", "markdown"):
        assert cli.run(["env", "--compare", *paths, "--format", chosen]) == 1
        said = capsys.readouterr().out.replace("\\", "")
        assert "NCCL_PROTO differs between hosts" in said
        assert "LL: a" in said
        if chosen == "json":
            assert json.loads(said)["data"]["hosts"] == ["a", "b"]
    assert cli.run(["env", "--compare", paths[0], paths[0]]) == 0


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "null", '{"schema_version": 1}', "\x00", "x" * 100, '{"a":' * 5000]
)
def test_what_is_no_report_is_one_line(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "host.json"
    path.write_text(text)
    with pytest.raises(Unreadable, match=r"host\.json"):
        read([path])
    assert cli.run(["env", "--compare", str(path), str(path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments", [["--compare"], ["--compare", "one.json"], ["one.json", "two.json"]]
)
def test_compare_wants_two_files_and_files_want_compare(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["env", *arguments]) == 2
    assert "--compare" in capsys.readouterr().err
