"""`env --fix`: commands that a shell of that kind really understands, and that mend the finding."""

import shutil
import subprocess
from collections.abc import Callable

import pytest
from environment_cases import Diagnose
from healthy_machine import ENVIRONMENT

from ddpdoctor.environment.model import Limit, SharedMemory
from ddpdoctor.environment.remedy import Shell, script, shell_of

# A finding each whose cure is to unset or to set something.
WRONG = {
    "NCCL_TIMEOUT": "3600",
    "NCCL_SOKET_IFNAME": "it's eth0",
    "NCCL_IB_TIMEOUT": "40",
    "NCCL_ASYNC_ERROR_HANDLING": "1",
}


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
    assert shell_of(path) == shell


@pytest.mark.parametrize(("program", "shell"), [("sh", "sh"), ("bash", "sh"), ("fish", "fish")])
def test_after_the_commands_nothing_is_left_to_mend(
    program: str, shell: Shell, diagnose: Diagnose
) -> None:
    if not shutil.which(program):
        pytest.skip(f"{program} is not installed")
    before = diagnose(WRONG)
    assert {one.code for one in before} == {"DDP109", "DDP701", "DDP703", "DDP702"}
    commands = script(before, shell) + "env -0\n"
    ran = subprocess.run(
        [program, "-c", commands],
        env={"PATH": "/usr/bin:/bin", **WRONG},
        capture_output=True,
        text=True,
        check=True,
    )
    after = dict(entry.split("=", 1) for entry in ran.stdout.split("\0") if "=" in entry)
    assert ran.stderr == ""
    assert after["NCCL_SOCKET_IFNAME"] == WRONG["NCCL_SOKET_IFNAME"]
    relevant = {k: v for k, v in after.items() if k.startswith(("NCCL", "TORCH"))}
    left = {one.code for one in diagnose(relevant)}
    assert left <= {"DDP107"}  # the value named no interface in the first place


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


def test_strict_fails_for_what_is_harmless(
    monkeypatch: pytest.MonkeyPatch, environment_with: Callable[..., object]
) -> None:
    from ddpdoctor import cli

    bare = environment_with({})
    odd = environment_with({"NCCL_DEBUG": "INFO"})
    for environment, strict, code in ((bare, True, 0), (odd, True, 1), (odd, False, 0)):
        monkeypatch.setattr(
            "ddpdoctor.environment.facts.collect", lambda *_, found=environment, **__: found
        )
        assert cli.run(["env", *(["--strict"] if strict else [])]) == code
