"""No secret gets into what is shown or written."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import get_args
from urllib.parse import quote, quote_plus

import pytest
from healthy_machine import ENVIRONMENT
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ddpdoctor.catalog import Finding
from ddpdoctor.environment import telling as pages
from ddpdoctor.environment.checks import findings
from ddpdoctor.environment.compare import Host, differences
from ddpdoctor.environment.facts import collect
from ddpdoctor.environment.facts.machine import Machine
from ddpdoctor.environment.facts.nccl_file import settings as nccl_settings
from ddpdoctor.environment.facts.variables import variables as set_variables
from ddpdoctor.environment.model import (
    Environment,
    EnvironmentReport,
    FileSetting,
    Search,
    Unknown,
    printable,
)
from ddpdoctor.environment.redaction import Redactor, is_secret_name, safe_line
from ddpdoctor.environment.remedy import Shell, script
from ddpdoctor.environment.variables import known
from ddpdoctor.report.formats import ReportFormat
from ddpdoctor.report.model import render

SECRET = "s3cr3t-Zq9"
NOTHING_KNOWN = Unknown(unknown="no idea")


def rendered(environment: Environment) -> dict[str, str]:
    report = EnvironmentReport(environment=environment, findings=tuple(findings(environment)))
    other = environment.model_copy(update={"variables": (), "cpus": NOTHING_KNOWN})
    hosts = [Host("a", environment), Host("b", other)]
    differ = differences(hosts)
    return {
        **{f"fix in {shell}": script(report.findings, shell) for shell in get_args(Shell)},
        **{
            f"compared in {form}": render(pages.compared(["a", "b"], differ), form)
            for form in ReportFormat
        },
        **{form: render(pages.told(report), form) for form in ReportFormat},
    }


@pytest.mark.parametrize(
    "name",
    [
        *("NCCL_SECRET", "HF_TOKEN", "HFTOKEN", "WANDB_API_KEY", "MY_APIKEY", "AWS_ACCESS_KEY_ID"),
        *("DB_PASSWORD", "PGPASSFILE_PASSWD", "GIT_CREDENTIALS", "SSH_PRIVATE", "GITHUB_PAT"),
        *("TORCHELASTIC_AUTH", "nccl_token", "SIGNING_KEY"),
    ],
)
def test_a_variable_with_a_telling_name_is_hidden(name: str) -> None:
    assert is_secret_name(name)
    assert Redactor({}).value(name, "pin") == "***"
    assert Redactor({}).value(name, "") == ""


def test_no_variable_that_the_checks_must_read_is_hidden_for_its_name() -> None:
    assert not [name for name in known() if is_secret_name(name)]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://ada:s3cr3t@proxy:3128", "http://***@proxy:3128"),
        ("http://ada:s3:cr/e@t@proxy:3128/path", "http://***@proxy:3128/path"),
        ("ada:s3cr3t@host", "***@host"),
        ("https://host/?user=ada&api_token=s3cr3t&x=1", "https://host/?user=ada&api_token=***&x=1"),
        ("Authorization: Bearer s3cr3t", "Authorization: Bearer ***"),
        ("hf_abcdefghijklmnop", "***"),
        # The clean twins.
        ("http://proxy:3128/path", "http://proxy:3128/path"),
        ("10.0.0.1:29500", "10.0.0.1:29500"),
        ("=eth0,eth1", "=eth0,eth1"),
        ("file:///tmp/store", "file:///tmp/store"),
    ],
)
def test_a_password_inside_a_value_is_hidden_and_the_rest_is_not(text: str, shown: str) -> None:
    assert Redactor({}).text(text) == shown


def test_a_secret_is_hidden_in_other_variables_and_in_messages_too() -> None:
    redactor = Redactor({"HF_TOKEN": SECRET})
    assert redactor.value("NCCL_DEBUG_FILE", f"/tmp/{SECRET}.log") == "/tmp/***.log"
    assert redactor.text(f"cannot open {SECRET}!") == "cannot open ***!"


def test_a_secret_is_hidden_in_a_message_that_has_escaped_it() -> None:
    secret = "s3cr\x1bt-Zq9"
    assert Redactor({"HF_TOKEN": secret}).text(f"bad value {printable(secret)}") == "bad value ***"


def test_a_secret_that_begins_with_another_one_leaves_nothing_behind() -> None:
    redactor = Redactor({"A_TOKEN": "abcdef", "B_TOKEN": "abcdefghij"})
    assert redactor.text("abcdefghij abcdef") == "*** ***"


@pytest.mark.thorough
def test_a_secret_in_the_real_environment_is_in_no_format(tmp_path: Path) -> None:
    environ = {
        "NCCL_API_TOKEN": SECRET,
        "NCCL_SOKET_TOKEN": SECRET,
        "NCCL_SOKET_IFNAME": f"https://ada:{SECRET}@host",
        "MASTER_ADDR": f"ada:{SECRET}@127.0.0.1",
        "MASTER_PORT": SECRET,
        "TORCH_DISTRIBUTED_DEBUG": SECRET,
        "SLURM_JOB_ID": SECRET,
        "CUDA_VISIBLE_DEVICES": f"GPU-{SECRET},GPU-{SECRET}",
        "PYTHONPATH": f"{tmp_path}/{SECRET}",
    }
    for form, shown in rendered(collect(environ)).items():
        assert SECRET not in shown
        tells_no_facts = form.startswith("fix") or form in ("concise", "github", "gitlab")
        assert "TORCH" in shown or tells_no_facts


@given(st.integers(0, 250), st.text(st.characters(codec="utf-8"), max_size=30))
def test_a_line_that_is_cut_shows_no_half_of_a_secret(before: int, after: str) -> None:
    line = f"{'.' * before} no device http://ada:{SECRET}@host {after}"
    assert not any(SECRET[:length] in safe_line(line) for length in range(4, len(SECRET)))


FAMILIES = ["NCCL_", "TORCH_NCCL_", "PET_", "GLOO_", "TORCHELASTIC_", ""]
WORDS = st.text(st.characters(codec="utf-8"), max_size=12) | st.text(max_size=6)
NAMES = (
    st.sampled_from(sorted(known()))
    | st.builds(str.__add__, st.sampled_from(FAMILIES), WORDS)
    | st.builds(lambda name, extra: name + extra, st.sampled_from(sorted(known())), WORDS)
)
VALUES = (
    WORDS
    | st.integers().map(str)
    | st.sampled_from(["0", "1", "true", "yes", "-1", "0,0", "1:4", "4(x2)", "lo", "^=lo", "INFO"])
    | st.builds("http://{}:{}@{}".format, st.just("ada"), st.just(SECRET), WORDS)
)


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(NAMES, VALUES, max_size=12),
    st.dictionaries(
        st.sampled_from(["NCCL_TOKEN", "MY_SECRET", "PET_API_KEY", "GLOO_PASSWORD"]),
        st.just(SECRET),
        max_size=2,
    ),
    st.sets(NAMES, max_size=3),
)
def test_no_environment_whatever_makes_it_raise_or_leak(
    environment_with: Callable[..., Environment],
    variables: dict[str, str],
    secrets: dict[str, str],
    echoes: set[str],
) -> None:
    environ = {**variables, **dict.fromkeys(echoes, f"x{SECRET}y" if secrets else "x"), **secrets}
    absent = tuple(printable(name) for name in environ)
    environment = environment_with(
        environ, search=Search(libraries=("libnccl.so",), present=(), absent=absent)
    )
    shown = rendered(environment)
    for text in shown.values():
        assert SECRET not in text
        assert all(character == "\n" or character.isprintable() for character in text)
    assert json.loads(shown["json"])["schema_version"] == 4


@settings(max_examples=40, deadline=None)
@given(lines=st.lists(st.tuples(NAMES | st.just("NCCL_TOKEN"), VALUES), max_size=8))
def test_no_file_of_nccl_makes_it_raise_or_leak(
    environment_with: Callable[..., Environment],
    tmp_path_factory: pytest.TempPathFactory,
    lines: list[tuple[str, str]],
) -> None:
    file = tmp_path_factory.mktemp("conf") / "nccl.conf"
    text = "\n".join(f"{name}={value}" for name, value in lines) + f"\nNCCL_TOKEN={SECRET}"
    file.write_bytes(text.encode(errors="surrogateescape"))
    machine = Machine({"NCCL_CONF_FILE": str(file)}, root=file.parent)
    read = nccl_settings(machine)
    assert all(isinstance(one, FileSetting) for one in read)
    environment = environment_with({}, nccl_file=read, variables=set_variables(machine, read))
    for shown in rendered(environment).values():
        assert SECRET not in shown
        assert all(character == "\n" or character.isprintable() for character in shown)


# What a secret can be made of; what ends a URL or a line of text is told by the shapes below.
LETTERS = st.characters(codec="utf-8", exclude_categories=("Z", "C"))
ANY_SECRET = st.text(LETTERS, min_size=8, max_size=40).filter(lambda text: len(set(text)) > 5)
IN_QUOTES = ANY_SECRET.filter(lambda text: not set(text) & set("\"'\\"))
IN_A_PARAMETER = ANY_SECRET.filter(lambda text: not set(text) & set("&;"))
NAMELESS = st.from_regex(r"[A-Za-z0-9_]{20,36}", fullmatch=True)
SHAPES = st.one_of(
    *(
        st.tuples(kind, st.just(shape))
        for kind, shapes in (
            (
                ANY_SECRET,
                (
                    "http://ada:{}@host:3128/way",
                    "https://{}@host",
                    "redis://:{}@host:6379/0",
                    "ada:{}@host",
                    "=/way/to/ada:{}@host",
                    ":{}@host",
                    "Authorization: Bearer {}",
                    "authorization=Basic {}",
                    "host=db user=ada password={}",
                    "wandb_api_key: {}",
                    "HF_TOKEN={}",
                    "DB_PASS={}",
                    "train.py --hub-token {} --lr 1",
                    "--password={}",
                ),
            ),
            (
                IN_A_PARAMETER,
                ("https://host/?api_token={}&x=1", "https://host/x?sv=1&sig={}", "s3://b?key={}"),
            ),
            (IN_QUOTES, ('{{"api_key": "{} and more"}}', "password='{} and more'")),
            (NAMELESS, ("{}",)),
        )
        for shape in shapes
    )
)
MARKS = ("hf_", "ghp_", "github_pat_", "glpat-", "sk-", "xoxb-", "AKIA", "AIza", "npm_", "pypi-")


def parts(secret: str) -> set[str]:
    """What may be nowhere: the secret, and pieces of it that nobody writes by chance."""
    return {secret[at : at + 8] for at in range(len(secret) - 7)}


@settings(max_examples=600, deadline=None)
@given(SHAPES, st.sampled_from(MARKS), WORDS, WORDS)
@example(("@0001234", "https://host/?api_token={}&x=1"), "hf_", "", "")
@example(("ab:c@0001234", "HF_TOKEN={}"), "hf_", "", "")
@example(("ab:c@0001234", '{{"api_key": "{} and more"}}'), "hf_", "", "")
def test_a_secret_is_hidden_in_every_shape_that_people_give_it(
    drawn: tuple[str, str], mark: str, before: str, after: str
) -> None:
    secret, shape = drawn
    text = shape.format(mark + secret if shape == "{}" else secret)
    told = Redactor({}).text(f"{before} {text} {after}")
    plain = f"{before} {shape.format('')} {after} ***"
    assert not [part for part in parts(secret) if part in told and part not in plain]


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters(codec="utf-8"), min_size=6, max_size=40).filter(str.strip))
def test_a_known_secret_is_hidden_however_others_write_it(secret: str) -> None:
    redactor = Redactor({"MY_TOKEN": secret})
    whole = secret.strip()
    ways = (repr(secret), json.dumps(secret), json.dumps(secret, ensure_ascii=False), quote(secret))
    ways += (quote(secret, safe=""), quote_plus(secret), printable(secret), whole, secret)
    for way in ways if len(whole) >= 6 else ways[:-2]:
        core = way.strip("\"'").strip()
        assert core not in redactor.text(f"no: {way}.") or core in "no: ***."


def test_of_a_secret_of_several_lines_no_line_is_told() -> None:
    key = "-----BEGIN KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQE\n-----END KEY-----\n"
    told = Redactor({"SSH_PRIVATE": key}).text("cannot read kqhkiG9w0BAQE, MIIEvQIBADANBg")
    assert told == "cannot read ***, ***"


@pytest.mark.parametrize("name", ["DB_PASS", "SLACK_WEBHOOK_URL", "SENTRY_DSN", "SMTP_PASS"])
def test_other_names_of_secrets_are_known(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "text",
    [
        "NCCL_IB_PKEY=3",
        "wait timeout after 1000ms, keys: /default_pg/0//worker_count",
        "PYTORCH_ALLOC_CONF=expandable_segments:True",
        "=mlx5_0:1,mlx5_1:1",
        "0,1;2,3",
        "node[01-16],login: no route to host",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert Redactor({}).text(text) == text


def test_of_a_value_with_a_secret_in_it_no_words_of_torch_are_told(
    diagnose: Callable[..., list[Finding]],
) -> None:
    torch = ENVIRONMENT.torch.model_copy(
        update={"refused": (("PYTORCH_ALLOC_CONF", "no option 's3cr3t'"),)}
    )
    for value, is_told in (("http://ada:s3cr3t,x@host", False), ("s3cr3t:1", True)):
        found = diagnose({"PYTORCH_ALLOC_CONF": value}, torch=torch)
        assert ("s3cr3t" in str(found)) == is_told


def test_a_command_to_paste_cannot_hold_a_command_of_somebody_else(
    diagnose: Callable[..., list[Finding]],
) -> None:
    environ = {"NCCL_SOKET_IFNAME": "x; rm -rf y", "PET_NPROCS_PER_NODE": "$(id)", "PET_;id": "1"}
    search = Search(libraries=("libtorch_cpu.so",), present=(), absent=tuple(environ))
    commands = [line for one in diagnose(environ, search=search) for line in one.cure.commands]
    assert "unset 'PET_;id'" in commands
    assert "export NCCL_SOCKET_IFNAME='x; rm -rf y'" in commands
    assert "export PET_NPROC_PER_NODE='$(id)'" in commands
