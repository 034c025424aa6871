"""`env --fix`: commands that a shell of that kind really understands, and that mend the finding."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from environment_cases import Diagnose
from healthy_machine import ENVIRONMENT
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from quick import QUICK_TORCH

from ddpdoctor.catalog import Finding
from ddpdoctor.environment.checks.finding import exported, finding
from ddpdoctor.environment.model import Limit, SharedMemory, Unknown
from ddpdoctor.environment.remedy import Shell, script, shell_of
from ddpdoctor.environment.variables import known

# A finding each whose cure is to unset or to set something.
WRONG = {
    "NCCL_TIMEOUT": "3600",
    "NCCL_SOKET_IFNAME": "it's eth0",
    "NCCL_IB_TIMEOUT": "40",
    "NCCL_ASYNC_ERROR_HANDLING": "1",
}


def cured(*commands: str) -> Finding:
    """A finding that these commands mend."""
    return finding("DDP703", "error", "wrong", "Mend it.", commands=commands)


@pytest.mark.parametrize(
    ("path", "shell"),
    [
        ("/bin/bash", "sh"),
        ("/usr/bin/zsh", "sh"),
        ("/usr/bin/fish", "fish"),
        ("/bin/tcsh", "csh"),
        (None, "sh"),
        ("", "sh"),
    ],
)
def test_the_shell_is_known_by_its_name(path: str | None, shell: Shell) -> None:
    assert shell_of({} if path is None else {"SHELL": path}) == shell


@pytest.mark.parametrize(
    ("parent", "environ", "shell"),
    [
        ("pwsh", {"SHELL": "/bin/bash", "PSModulePath": "/opt/modules"}, "pwsh"),
        ("uv", {"SHELL": "/bin/bash", "PSModulePath": "/opt/modules"}, "pwsh"),
        ("bash", {"SHELL": "/usr/bin/fish", "PSModulePath": "/opt/modules"}, "sh"),
        ("fish", {"SHELL": "/bin/bash"}, "fish"),
        ("python", {"SHELL": "/usr/bin/pwsh"}, "pwsh"),
        ("python", {"SHELL": "/bin/nu"}, "sh"),
    ],
)
def test_the_shell_in_which_it_was_typed_goes_before_the_login_shell(
    parent: str, environ: dict[str, str], shell: Shell
) -> None:
    assert shell_of(environ, parent) == shell


def test_who_typed_it_in_powershell_gets_lines_of_powershell(tmp_path: Path) -> None:
    """A program of that name starts the command: pwsh itself is not on every machine."""
    pwsh = tmp_path / "pwsh"
    shutil.copy(shutil.which("dash") or "/bin/sh", pwsh)
    doctor = shlex.join([sys.executable, "-m", "ddpdoctor", "env", "--fix"])
    wrong = {"NCCL_TIMEOUT": "3600", "NCCL_SOKET_IFNAME": "it's eth0", "SHELL": "/bin/bash"}
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(QUICK_TORCH), **wrong}
    told = {
        str(shell): subprocess.run(
            [shell, "-c", f"{doctor}; exit 0"],  # or a shell becomes the last command
            env=environ,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for shell in (pwsh, "/bin/sh")
    }
    assert "Remove-Item Env:NCCL_TIMEOUT\n" in told[str(pwsh)]
    assert "$env:NCCL_SOCKET_IFNAME = 'it''s eth0'\n" in told[str(pwsh)]
    assert "unset NCCL_TIMEOUT\n" in told["/bin/sh"]
    assert "$env:" not in told["/bin/sh"]


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("unset NCCL_TIMEOUT", "Remove-Item Env:NCCL_TIMEOUT"),
        ("unset 'PET_; id' A", "Remove-Item -LiteralPath 'Env:PET_; id'\nRemove-Item Env:A"),
        ("export A=1", "$env:A = '1'"),
        ("export A='$x `y` ; # \u2019 \"'", "$env:A = '$x `y` ; # \u2019\u2019 \"'"),
        ("ulimit -n 77", "# pwsh has no limits: before you start it, ulimit -n 77"),
        ("nvidia-smi -i 0,1 -mig 0", "sudo nvidia-smi -i '0,1' -mig 0"),
        ("sed -i '/^NCCL_A=/d' /etc/nccl.conf", "sed -i '/^NCCL_A=/d' /etc/nccl.conf"),
        ("sysctl kernel.numa_balancing=0", "sudo sysctl 'kernel.numa_balancing=0'"),
    ],
)
def test_each_command_has_a_line_of_powershell(command: str, line: str) -> None:
    assert script([cured(command)], "pwsh").partition("\n")[2] == f"{line}\n"


PROGRAMS: list[tuple[str, Shell]] = [
    *(("sh", "sh"), ("bash", "sh"), ("dash", "sh"), ("zsh", "sh"), ("ksh", "sh")),
    *(("fish", "fish"), ("csh", "csh"), ("tcsh", "csh"), ("pwsh", "pwsh")),
]


def run_in(program: str, commands: str, **environ: str) -> str:
    """What such a shell prints; it says nothing on stderr."""
    if not (found := shutil.which(program)):
        pytest.skip(f"{program} is not installed")
    options = ["-f"] * (program in ("csh", "tcsh", "zsh")) + ["-NoProfile"] * (program == "pwsh")
    ran = subprocess.run(
        [found, *options, "-c", commands],
        env={"PATH": "/usr/bin:/bin", **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stderr == ""
    return ran.stdout


def variables_in(output: str) -> dict[str, str]:
    return dict(entry.split("=", 1) for entry in output.split("\0") if "=" in entry)


@pytest.mark.parametrize(("program", "shell"), PROGRAMS)
def test_after_the_commands_nothing_is_left_to_mend(
    program: str, shell: Shell, diagnose: Diagnose
) -> None:
    before = diagnose(WRONG)
    assert {one.code for one in before} == {"DDP109", "DDP701", "DDP703", "DDP702"}
    after = variables_in(run_in(program, script(before, shell) + "env -0\n", **WRONG))
    assert after["NCCL_SOCKET_IFNAME"] == WRONG["NCCL_SOKET_IFNAME"]
    relevant = {k: v for k, v in after.items() if k.startswith(("NCCL", "TORCH"))}
    left = {one.code for one in diagnose(relevant)}
    assert left <= {"DDP107"}  # the value named no interface in the first place


VALUES = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=12)


@pytest.mark.parametrize(("program", "shell"), PROGRAMS)
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(values=st.lists(VALUES, min_size=20, max_size=40))
@example(
    values=[
        "it's",
        "a!b",
        "a\\\\b",
        "a\\'b",
        "$x `y` $(z)",
        "~",
        "*",
        "#",
        "; id",
        "!!",
        "a  b",
        "=eth0",
        "=0",
    ]
)
def test_every_value_arrives_as_it_is(program: str, shell: Shell, values: list[str]) -> None:
    names = [f"A{number}" for number in range(len(values))]
    sets = [exported(name, value) for name, value in zip(names, values, strict=True)]
    after = variables_in(run_in(program, script([cured(*sets)], shell) + "env -0\n"))
    assert [after.get(name) for name in names] == values


@pytest.mark.parametrize(("program", "shell"), PROGRAMS)
@pytest.mark.parametrize(
    "name", ["PET_; echo owned", "PET_$(echo owned)", "PET_`echo owned`", "PET_!ls", "PET_'\"x"]
)
def test_the_name_of_a_variable_is_no_command(program: str, shell: Shell, name: str) -> None:
    if not shutil.which(program):
        pytest.skip(f"{program} is not installed")
    commands = script([cured(f"unset {shlex.quote(name)}")], shell).splitlines()[1:]
    ran = subprocess.run([program, "-c", "\n".join(commands)], capture_output=True, text=True)
    assert "owned" not in ran.stdout.splitlines()
    assert "Event not found" not in ran.stderr
    assert "nmatched" not in ran.stderr


@pytest.mark.parametrize(("program", "shell"), PROGRAMS[:-1])  # PowerShell has no limits
def test_limits_and_files_are_changed_in_every_shell(
    program: str, shell: Shell, tmp_path: Path
) -> None:
    file = tmp_path / "it's! nccl.conf"
    file.write_text("NCCL_SOKET_IFNAME=a\nNCCL_DEBUG=INFO\n")
    commands = script(
        [
            cured("ulimit -n 77"),
            cured("ulimit -f unlimited"),
            cured(f"sed -i 's/^NCCL_SOKET_IFNAME=/NCCL_SOCKET_IFNAME=/' {shlex.quote(str(file))}"),
        ],
        shell,
    )
    says = "cat /proc/self/limits\n"
    (line,) = [
        line for line in run_in(program, commands + says).splitlines() if "open files" in line
    ]
    assert line.split()[3] == "77"
    assert file.read_text() == "NCCL_SOCKET_IFNAME=a\nNCCL_DEBUG=INFO\n"


@pytest.mark.parametrize(("limit", "is_told"), [(8 << 20, True), (None, False)])
def test_a_files_limit_is_lifted_only_where_it_is_the_cause(
    limit: int | None, is_told: bool, diagnose: Diagnose
) -> None:
    limited = ENVIRONMENT.limits.model_copy(update={"file_size": Limit(soft=limit, hard=None)})
    shared = SharedMemory(size=1 << 30, free=1 << 30, tried=32 << 20, takes_it=False)
    (found,) = diagnose({}, shared_memory=shared, limits=limited)
    assert (found.cure.commands == ("ulimit -f unlimited",)) == is_told


def test_what_only_a_person_can_do_is_a_comment(diagnose: Diagnose) -> None:
    found = diagnose({"MASTER_ADDR": "nowhere.invalid", "MASTER_PORT": "29512"})
    lines = script(found, "sh").splitlines()
    assert all(line.startswith("#") for line in lines)
    assert any("by hand: Mend the name" in line for line in lines)


def after(commands: str, environ: dict[str, str]) -> dict[str, str]:
    """What `export` and `unset` make of these variables."""
    environ = dict(environ)
    for line in commands.splitlines():
        match shlex.split(line, comments=True):
            case ["export", *settings_]:
                environ |= dict(one.split("=", 1) for one in settings_)
            case ["unset", *names]:
                environ = {name: value for name, value in environ.items() if name not in names}
    return environ


@pytest.mark.parametrize("value", ["maybe", "-9", "0", "1", "99999"])
def test_of_what_a_single_variable_does_wrong_nothing_is_left_after_the_commands(
    value: str, diagnose: Diagnose
) -> None:
    by_hand = ("DDP104", "DDP108")  # a port, or a machine, that only a person can choose
    for name in known():
        # The flight recorder's dump is what some of them undo.
        environ = {name: value, "TORCH_NCCL_DUMP_ON_TIMEOUT": "1"}
        mended = diagnose(after(script(diagnose(environ), "sh"), environ))
        left = [one for one in mended if one.severity != "info" and one.code not in by_hand]
        assert [one.cause for one in left] == [], name


def test_nccls_exact_names_are_no_commands_of_zsh(diagnose: Diagnose) -> None:
    (one,) = (one for one in diagnose({"NCCL_SOKET_IFNAME": "=eth0"}) if one.code == "DDP701")
    assert one.cure.commands[0] == "export NCCL_SOCKET_IFNAME='=eth0'"


def test_a_hostile_value_cannot_leave_its_quotes(diagnose: Diagnose) -> None:
    hostile = {"NCCL_SOKET_IFNAME": "'; touch /tmp/owned; '\n$(id)"}
    commands = script(diagnose(hostile), "sh")
    ran = subprocess.run(
        ["sh", "-c", commands + 'echo "$NCCL_SOCKET_IFNAME"'],
        env={"PATH": "/usr/bin:/bin", **hostile},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "touch /tmp/owned" in ran.stdout


def test_strict_fails_for_what_is_harmless_and_for_what_is_not_known(
    monkeypatch: pytest.MonkeyPatch, environment_with: Callable[..., object]
) -> None:
    from ddpdoctor import cli

    bare = environment_with({})
    odd = environment_with({"NCCL_DEBUG": "INFO"})
    unseen = environment_with({}, torch=Unknown(unknown="it did not answer"))
    for environment, strict, code in (
        (bare, True, 0),
        (odd, True, 1),
        (odd, False, 0),
        (unseen, True, 3),
        (unseen, False, 0),
    ):
        monkeypatch.setattr(
            "ddpdoctor.environment.facts.collect", lambda *_, found=environment, **__: found
        )
        assert cli.run(["env", *(["--strict"] if strict else [])]) == code
