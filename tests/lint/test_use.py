from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from ddpdoctor.lint.cache import Cache
from ddpdoctor.lint.engine.interpreter import program
from ddpdoctor.lint.linter import lint as lint_files
from ddpdoctor.lint.linter import roots
from ddpdoctor.report.gravity import FailOn
from tests.lint.conftest import Lint

HANG = (
    "import torch.distributed as dist\nrank = dist.get_rank()\n\n"
    "def save(who):\n    if rank == 0:\n        dist.barrier()\n"
)
LOAD = (
    "import torch\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n\n\n"
    "def build(net, path):\n    net.load_state_dict(torch.load(path))\n    return DDP(net.cuda())\n"
)
SHUFFLE = (
    "from torch.utils.data import DataLoader, DistributedSampler\n\n\ndef make(data):\n"
    "    return DataLoader(data, shuffle=True, sampler=DistributedSampler(data))\n"
)


def write(name: str, text: str) -> None:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_certain_finding_fails_and_a_likely_one_where_warnings_do(lint: Lint) -> None:
    write("hang.py", HANG)
    write("load.py", LOAD)
    assert lint("hang.py")[0] == 1
    assert lint("load.py")[0] == 0
    assert "DDP510" in lint("load.py")[1]
    assert lint("load.py", fail_on=FailOn.warning)[0] == 1
    assert lint("hang.py", fail_on=FailOn.never)[0] == 0
    assert lint("hang.py", exit_zero=True)[0] == 0


def test_clean_code_passes_in_silence(lint: Lint) -> None:
    write("fine.py", "print(1)\n")
    assert lint("fine.py") == (0, "", "")


def test_text_shows_line_caret_reason_and_cure_within_100_columns(lint: Lint) -> None:
    write(
        "hang.py", HANG.replace("who):", f"who, {'x' * 300}=0):").replace("rank == 0", "not rank")
    )
    write(
        "wide.py",
        "import torch.distributed as dist\nrank = dist.get_rank()\n"
        f"if rank == 0: x = '{'y' * 5000}'; dist.barrier()\n",
    )
    _, out, _ = lint(format="text")
    assert "6 | dist.barrier()" in out
    assert "\n    | ^^^^^^^^^^^^^^\n" in out
    assert "Evidence  it stands under `if not rank:` (line 5)" in out
    assert "Remedy    " in out
    assert "2 findings (2 certain, 0 likely) in 2 files" in out
    assert max(map(len, out.splitlines())) <= 100


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"select": ("DDP4",)}, {"DDP401"}),
        ({"select": ("loads-on-one-device",)}, {"DDP510"}),
        ({"ignore": ("DDP4",)}, {"DDP510"}),
        ({"select": ("DDP4",), "extend_select": ("DDP510",)}, {"DDP401", "DDP510"}),
        ({"select": ("ALL",)}, {"DDP401", "DDP510"}),
    ],
)
def test_rules_are_selected_by_prefix_and_name(
    lint: Lint, options: dict[str, tuple[str, ...]], expected: set[str]
) -> None:
    write("hang.py", HANG)
    write("load.py", LOAD)
    _, out, _ = lint(**options)
    assert {line.split()[1] for line in out.splitlines()} == expected


@pytest.mark.parametrize(
    "options",
    [{"select": ("DDP9",)}, {"config": Path("no.toml")}],
)
def test_a_usage_error_is_one_line_and_exit_code_2(lint: Lint, options: dict[str, object]) -> None:
    write("hang.py", HANG)
    code, out, err = lint("hang.py", **options)
    assert (code, out) == (2, "")
    assert err.startswith("ddpdoctor: ")
    assert err.count("\n") == 1


def test_a_path_that_does_not_exist_is_a_usage_error(lint: Lint) -> None:
    assert lint("nothing.py")[0] == 2


def test_a_folder_without_source_is_a_usage_error(lint: Lint) -> None:
    Path("folder").mkdir()
    Path("folder", "notes.txt").touch()
    status, out, err = lint("folder")
    assert (status, out) == (2, "")
    assert err == "ddpdoctor: there is no Python file and no notebook in folder\n"


def test_where_nothing_can_be_read_it_is_a_usage_error(lint: Lint) -> None:
    write("bad/torn.py", "def f(:\n")
    write("bad/worse.py", "def (:\n")
    write("prose.txt", "It was a dark night.\n")
    why = "cannot be parsed: line 1: invalid syntax"
    for path, first in (("bad", f"bad/torn.py {why}, and 1 more"), ("prose.txt", None)):
        said = f"nothing in {path} could be read as Python: {first or f'{path} {why}'}"
        assert lint(path) == (2, "", f"ddpdoctor: {said}\n")
    assert lint("-", stdin=b"") == (2, "", "ddpdoctor: standard input is empty\n")
    # A file that was named, and one in an editor that is empty yet, are there.
    assert lint("bad/torn.py")[0] == 3
    assert lint("-", stdin=b"", stdin_filename="new.py")[0] == 0
    write("bad/fine.py", "x = 1\n")
    assert lint("bad")[0] == 0


@pytest.mark.parametrize(
    "comment",
    [
        "# noqa: DDP401",
        "# noqa",
        "# noqa: E501, DDP4",
        "# ddpdoctor: ignore[DDP401] one rank",
        "# NOQA:DDP401",
    ],
)
def test_a_comment_on_the_line_silences(lint: Lint, comment: str) -> None:
    write("hang.py", HANG.replace("barrier()", f"barrier()  {comment}"))
    assert lint("hang.py")[:2] == (0, "")


@pytest.mark.parametrize("comment", ["# noqa: E501", "# ddpdoctor: ignore[DDP2]", "# noqable"])
def test_a_comment_about_something_else_does_not_silence(lint: Lint, comment: str) -> None:
    write("hang.py", HANG.replace("barrier()", f"barrier()  {comment}"))
    assert lint("hang.py")[0] == 1


def test_a_comment_on_any_line_of_the_statement_silences(lint: Lint) -> None:
    write("hang.py", HANG.replace("dist.barrier()", "dist.barrier(\n        )  # noqa: DDP401"))
    assert lint("hang.py")[0] == 0


def test_a_folder_is_an_environment_or_built_by_what_lies_there_and_not_by_its_name(
    lint: Lint,
) -> None:
    write("env/hang.py", HANG)
    write("model/dist/hang.py", HANG)
    write("mine/pyvenv.cfg", "home = /usr/bin\n")
    write("mine/lib/hang.py", HANG)
    write("tool/setup.py", "")
    write("tool/build/lib/hang.py", HANG)
    _, out, _ = lint()
    found = [line.split(":")[0] for line in out.splitlines()]
    assert found == ["env/hang.py", "model/dist/hang.py"]


def test_pyproject_configures(lint: Lint) -> None:
    write("hang.py", HANG)
    write("tests/hang.py", HANG)
    write("old/hang.py", HANG)
    write("load.py", LOAD)
    write(
        "pyproject.toml",
        '[tool.ddpdoctor]\nignore = ["DDP510"]\nexclude = ["old"]\n'
        '[tool.ddpdoctor.per-file-ignores]\n"tests/*" = ["DDP4"]\n',
    )
    _, out, _ = lint()
    assert [line.split(":")[0] for line in out.splitlines()] == ["hang.py"]


@pytest.mark.parametrize(
    "table",
    ["select = 1", "nonsense = []", "per-file-ignores = []", "]", f"a = {2000 * '['}{2000 * ']'}"],
)
def test_a_wrong_pyproject_is_a_usage_error(lint: Lint, table: str) -> None:
    write("hang.py", HANG)
    write("pyproject.toml", f"[tool.ddpdoctor.lint]\n{table}\n")
    code, _, err = lint()
    assert code == 2
    assert "pyproject.toml" in err


def test_a_baseline_hides_old_findings_wherever_they_move(lint: Lint) -> None:
    write("hang.py", HANG)
    assert lint("hang.py", write_baseline=Path("old.json"))[0] == 0
    write("hang.py", "# moved\n\n" + HANG)
    assert lint("hang.py", baseline=Path("old.json"))[:2] == (0, "")
    write("hang.py", HANG + "        dist.barrier()\n")
    code, out, _ = lint("hang.py", baseline=Path("old.json"))
    assert (code, out.count("DDP401")) == (1, 1)


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{"findings": [{"path": "a", "code": "DDP401", "line": "", "count": 1e999}]}',
        "[" * 100_000,
    ],
)
def test_a_file_that_is_no_baseline_is_a_usage_error(lint: Lint, text: str) -> None:
    write("hang.py", HANG)
    write("old.json", text)
    assert lint("hang.py", baseline=Path("old.json"))[0] == 2


def test_a_device_is_no_baseline(lint: Lint) -> None:
    write("hang.py", HANG)
    code, _, err = lint("hang.py", baseline=Path("/dev/zero"))
    assert (code, "/dev/zero is not a file" in err) == (2, True)


def test_statistics_count_by_rule(lint: Lint) -> None:
    write("hang.py", HANG + "        dist.barrier()\n")
    assert lint("hang.py", statistics=True)[1] == "2  DDP401  rank-conditional-collective\n"


def test_json_carries_the_finding_that_all_commands_share(lint: Lint) -> None:
    write("hang.py", HANG)
    document = json.loads(lint("hang.py", format="json")[1])
    (finding,) = document["findings"]
    assert document["schema_version"] == 4
    assert finding["code"] == "DDP401"
    assert finding["certainty"] == "certain"
    assert finding["places"][0]["place"] == {"file": "hang.py", "line": 6, "function": "save"}
    assert finding["span"] == {"column": 9, "end_line": 6, "end_column": 23, "cell": 0}


def test_sarif_names_rule_place_and_a_stable_fingerprint(lint: Lint) -> None:
    write("hang.py", HANG)
    before = json.loads(lint("hang.py", format="sarif")[1])["runs"][0]
    write("hang.py", "\n" + HANG)
    after = json.loads(lint("hang.py", format="sarif")[1])["runs"][0]
    (result,) = before["results"]
    rule = before["tool"]["driver"]["rules"][result["ruleIndex"]]
    assert result["ruleId"] == rule["id"] == "DDP401"
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "hang.py"
    assert place["region"]["startLine"] == 6
    assert result["partialFingerprints"] == after["results"][0]["partialFingerprints"]


def test_where_a_wrapper_is_taken_off_is_told_of_a_call_elsewhere(lint: Lint) -> None:
    write(
        "bare.py",
        "from torch.nn.parallel import DistributedDataParallel\n"
        "def loss_of(net, x):\n"
        "    return net(x).sum()\n"
        "def train(net, batches, optimizer):\n"
        "    model = DistributedDataParallel(net)\n"
        "    inner = model.module\n"
        "    for x in batches:\n"
        "        loss_of(inner, x).backward()\n"
        "        optimizer.step()\n",
    )
    (finding,) = json.loads(lint("bare.py", format="json")[1])["findings"]
    assert finding["code"] == "DDP303"
    assert [each["place"]["line"] for each in finding["places"]] == [3, 5, 6, 8]


def test_the_chain_of_values_is_told_with_its_places_in_sarif_and_json(lint: Lint) -> None:
    write("hang.py", HANG)
    (finding,) = json.loads(lint("hang.py", format="json")[1])["findings"]
    assert [each["place"]["line"] for each in finding["places"]] == [6, 5, 2]
    (result,) = json.loads(lint("hang.py", format="sarif")[1])["runs"][0]["results"]
    assert [_line(each) for each in result["relatedLocations"]] == [5, 2]
    ((steps,),) = [each["threadFlows"] for each in result["codeFlows"]]
    flow = [each["location"] for each in steps["locations"]]
    assert [(_line(each), each["message"]["text"]) for each in flow] == [
        (2, "`dist.get_rank()` asks for the rank"),
        (5, "it stands under `if rank == 0:`"),
        (6, result["message"]["text"].partition(" (")[0]),
    ]


def _line(location: dict[str, Any]) -> int:
    return int(location["physicalLocation"]["region"]["startLine"])


def test_junit_has_a_failure_per_finding_and_a_skip_per_unreadable_file(lint: Lint) -> None:
    write("hang.py", HANG)
    write("torn.py", "def (:\n")
    root = ElementTree.fromstring(lint(format="junit")[1])
    assert len(root.findall(".//failure")) == 1
    assert len(root.findall(".//skipped")) == 1


def test_gitlab_shows_each_finding_beside_its_line_with_a_stable_fingerprint(lint: Lint) -> None:
    Path("hang.py").write_text(HANG)
    (before,) = json.loads(lint("hang.py", format="gitlab")[1])
    Path("hang.py").write_text(f"# moved\n{HANG}")
    (after,) = json.loads(lint("hang.py", format="gitlab")[1])
    assert {"description", "check_name", "fingerprint", "severity", "location"} == {*before}
    assert (before["check_name"], before["severity"]) == ("DDP401", "major")
    assert before["location"]["path"] == "hang.py"
    assert after["location"]["lines"]["begin"] == before["location"]["lines"]["begin"] + 1
    assert after["fingerprint"] == before["fingerprint"]


def test_github_annotates(lint: Lint) -> None:
    write("hang.py", HANG)
    out = lint("hang.py", format="github")[1]
    assert out.startswith("::error file=hang.py,line=6,")
    assert "%0A" in out
    assert out.count("\n") == 1


def test_standard_input_goes_by_the_name_it_is_given(lint: Lint) -> None:
    code, out, _ = lint("-", stdin=HANG.encode(), stdin_filename="src/hang.py")
    assert code == 1
    assert out.startswith("src/hang.py:6:9: DDP401")


def test_standard_input_can_be_fixed_to_standard_output(lint: Lint) -> None:
    assert lint("-", stdin=SHUFFLE.encode(), fix=True)[1] == SHUFFLE.replace("=True", "=False")
    assert lint("-", stdin=b"x = 1\n", fix=True, format="text") == (0, "x = 1\n", "")


def test_what_could_not_be_read_is_told_beside_its_source(lint: Lint) -> None:
    told = "<stdin>.py: cannot be parsed: line 1: invalid syntax\n"
    source = {"stdin": b"def f(:\n", "format": "text"}
    assert lint("-", fix=True, **source) == (3, "def f(:\n", told)
    assert lint("-", fix=True, output=Path("report"), **source) == (3, "def f(:\n", told)
    assert "not seen: <stdin>.py" in Path("report").read_text()
    assert lint("-", output=Path("report"), **source) == (3, "", told)
    assert lint("-", diff=True, **source)[1:] == ("", told)
    assert lint("-", **source)[2] == ""  # stdout has it


@pytest.fixture
def little_fuel(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program is cut off much sooner."""
    monkeypatch.setattr(program.run_file, "__defaults__", (4_000,))


@pytest.mark.usefixtures("little_fuel")
def test_a_program_too_long_to_be_followed_is_no_clean_one(tmp_path: Path, lint: Lint) -> None:
    steps = (f"def f{n}(x):\n    return f{n - 1}(x) + f{n - 1}(x + 1)\n\n\n" for n in range(1, 18))
    short, long = tmp_path / "short.py", tmp_path / "long.py"
    begin = "import torch.distributed as dist\n\n\ndef f0(x):\n    return x\n\n\n"
    long.write_text(begin + "".join(steps) + "dist.barrier()\nprint(f17(dist.get_rank()))\n")
    short.write_text(begin + "dist.barrier()\nprint(f0(dist.get_rank()))\n")
    for _ in range(2):
        cache = Cache(tmp_path / "cache")
        result = lint_files([str(short), str(long)], cache=cache)
        assert (result.cut, result.diagnostics, result.troubles) == ([str(long)], [], [])
    status, out, _ = lint(str(long), format="text")
    assert status == 0
    assert "what it runs is too long to be followed to its end" in " ".join(out.split())
    assert "0 findings in 1 file, 1 checked in part" in out


@pytest.mark.usefixtures("little_fuel")
@pytest.mark.parametrize("met", [False, True])
def test_what_may_come_behind_the_cut_is_not_missed(met: bool, tmp_path: Path) -> None:
    """Whether rank 0 joins the others' barrier is not known, unless it is seen elsewhere before."""
    steps = (f"def f{n}(x):\n    return f{n - 1}(x) + f{n - 1}(x + 1)\n\n\n" for n in range(1, 18))
    script = tmp_path / "train.py"
    script.write_text(
        "import torch.distributed as dist\n\n\ndef f0(x):\n    return x\n\n\n"
        + "".join(steps)
        + "dist.init_process_group()\nrank = dist.get_rank()\n"
        + "if rank != 0:\n    dist.barrier()\n"
        + ("dist.all_reduce(total)\n" if met else "")
        + "print(f17(rank))\nif rank == 0:\n    dist.barrier()\n"
    )
    result = lint_files([str(script)])
    assert result.cut == [str(script)]
    assert [each.code for each in result.diagnostics] == (["DDP401"] if met else [])


def test_fix_changes_what_is_mechanical_and_nothing_else(lint: Lint) -> None:
    write("shuffle.py", SHUFFLE.replace("\n", "\r\n"))
    code, _, _ = lint("shuffle.py", fix=True, format="text")
    assert code == 0
    new = Path("shuffle.py").read_bytes().decode()
    assert new == SHUFFLE.replace("=True", "=False").replace("\n", "\r\n")


def test_diff_shows_and_leaves_the_file(lint: Lint) -> None:
    write("shuffle.py", SHUFFLE)
    code, out, _ = lint("shuffle.py", diff=True)
    assert code == 1
    assert "-    return DataLoader(data, shuffle=True" in out
    assert "+    return DataLoader(data, shuffle=False" in out
    assert Path("shuffle.py").read_text() == SHUFFLE


def test_an_unsafe_fix_wants_to_be_asked_for(lint: Lint) -> None:
    text = (
        "import torch\nimport torch.distributed as dist\n"
        "from torch.utils.data import random_split\n\n\ndef cut(data):\n    dist.barrier()\n"
        "    return random_split(data, [9, 1])\n"
    )
    write("cut.py", text)
    lint("cut.py", fix=True)
    assert Path("cut.py").read_text() == text
    lint("cut.py", fix=True, unsafe_fixes=True)
    assert "generator=torch.Generator().manual_seed(0))" in Path("cut.py").read_text()


def test_a_notebook_is_told_by_cell_and_line(lint: Lint) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# title"]},
        {
            "cell_type": "code",
            "source": ["%matplotlib inline\n", "!ls\n", "import torch.distributed as dist"],
        },
        {
            "cell_type": "code",
            "source": "rank = dist.get_rank()\nif rank == 0:\n    dist.barrier()",
        },
    ]
    write("nb.ipynb", json.dumps({"cells": cells, "metadata": {}}))
    code, out, _ = lint("nb.ipynb")
    assert code == 1
    assert out.startswith("nb.ipynb:cell 3:3:5: DDP401")
    cells[2]["source"] = "def main(rank):\n    if rank == 0:\n        dist.barrier()"
    cells.append({"cell_type": "code", "source": "main(dist.get_rank())"})
    write("nb.ipynb", json.dumps({"cells": cells, "metadata": {}}))
    _, out, _ = lint("nb.ipynb", format="text")
    assert "it stands under `if rank == 0:` (line 2)" in out
    assert "(cell 4, line 1)" in out


def test_a_notebook_that_joins_a_group_is_one_process_unless_it_starts_others(lint: Lint) -> None:
    joins = "import torch, torch.distributed as dist\nimport torch.multiprocessing as mp\n"
    joins += "def join(rank):\n    dist.init_process_group('gloo', rank=rank, world_size=2)\n"
    alone = "join(0)\ntorch.save(torch.zeros(3), 'drawn.pt')"
    started = "def work(rank):\n    join(rank)\n    torch.save(torch.zeros(3), 'drawn.pt')\n"
    started += "mp.spawn(work, nprocs=2)"

    def found(source: str) -> bool:
        cells = [{"cell_type": "code", "source": each} for each in (joins, source)]
        write("nb.ipynb", json.dumps({"cells": cells, "metadata": {}}))
        return "DDP502" in lint("nb.ipynb")[1]

    assert not found(alone)
    assert found(started)


def test_calls_are_followed_into_other_files_of_the_project(lint: Lint) -> None:
    write("pkg/__init__.py", "from .comm import everybody_waits as wait\n")
    write(
        "pkg/comm.py",
        "import torch.distributed as dist\n\n\ndef everybody_waits():\n    dist.barrier()\n",
    )
    write("train.py", "import pkg\n\n\ndef main(rank):\n    if rank == 0:\n        pkg.wait()\n")
    _, out, _ = lint("train.py", format="text")
    assert "--> train.py:6:9" in out
    assert "everybody_waits() calls barrier() (comm.py:5)" in out
    assert lint("pkg")[1] == ""


def test_the_users_own_libraries_are_told_in_lines_of_the_same_kind(lint: Lint) -> None:
    write(
        "train.py",
        "import torch.distributed as dist\nfrom comms import sync\n\n"
        "if dist.get_rank() == 0:\n    sync()\n",
    )
    assert lint("train.py")[1] == ""
    write("pyproject.toml", '[tool.ddpdoctor]\neffects = ["comms.sync collective"]\n')
    assert "train.py:5:5: DDP401 sync()" in lint("train.py")[1]
    write("pyproject.toml", '[tool.ddpdoctor]\neffects = ["comms.sync collectve"]\n')
    code, _, err = lint("train.py")
    assert code == 2
    assert "effects: `comms.sync collectve`: after the name comes one of collective" in err


def test_set_epoch_elsewhere_in_the_project_counts(lint: Lint) -> None:
    loader = (
        "from torch.utils.data import DataLoader, DistributedSampler\n\n\n"
        "def make(data):\n    sampler = DistributedSampler(data)\n"
        "    return sampler, DataLoader(data, sampler=sampler)\n"
    )
    train = (
        "from begin import begin\nfrom loader import make\n\n\n"
        "def main(model, data):\n    sampler, loader = make(data)\n"
        "    for epoch in range(9):\n        begin(sampler, epoch)\n"
        "        for batch in loader:\n            model(batch).sum().backward()\n"
    )
    write("pyproject.toml", "")
    write("loader.py", loader)
    write("train.py", train)
    write("begin.py", "def begin(sampler, epoch):\n    print(epoch)\n")
    assert "loader.py:5" in lint("loader.py", "train.py")[1]
    write("begin.py", "def begin(sampler, epoch):\n    sampler.set_epoch(epoch)\n")
    assert lint("loader.py", "train.py")[1] == ""


def test_a_second_run_knows_the_files_by_content(tmp_path: Path) -> None:
    file = tmp_path / "hang.py"
    file.write_text(HANG)
    folder = tmp_path / "cache"
    first = lint_files([str(file)], cache=Cache(folder)).diagnostics
    second = lint_files([str(file)], cache=Cache(folder)).diagnostics
    assert [each.code for each in first] == ["DDP401"]
    assert second == first
    file.write_text(HANG.replace("rank == 0", "rank is not None"))
    assert lint_files([str(file)], cache=Cache(folder)).diagnostics == []
    (folder / "lint.sqlite3").write_bytes(b"not a database")
    file.write_text(HANG)
    assert lint_files([str(file)], cache=Cache(folder)).diagnostics == first


def test_a_cached_file_is_asked_again_when_a_callee_changes(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import comm\n\n\ndef main(rank):\n    if rank == 0:\n        comm.go()\n"
    )
    (tmp_path / "comm.py").write_text("def go():\n    pass\n")
    paths = [str(tmp_path / "train.py")]
    assert lint_files(paths, cache=Cache(tmp_path / "c")).diagnostics == []
    (tmp_path / "comm.py").write_text(
        "import torch.distributed as dist\n\n\ndef go():\n    dist.barrier()\n"
    )
    assert len(lint_files(paths, cache=Cache(tmp_path / "c")).diagnostics) == 1


def test_many_files_are_linted_in_parallel_with_the_same_result(tmp_path: Path) -> None:
    for number in range(70):
        (tmp_path / f"m{number}.py").write_text(HANG)
    paths = [str(tmp_path / f"m{number}.py") for number in range(70)]
    assert lint_files(paths, jobs=2).diagnostics == lint_files(paths).diagnostics


def test_torch_is_not_imported() -> None:
    code = (
        "import sys, ddpdoctor.lint.command as c; "
        "c.run(c.LintOptions(paths=('-',), cache=False), b'import torch.distributed'); "
        "print('torch' in sys.modules, 'pydantic' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False False"


def test_a_file_that_is_linted_and_imported_counts_once(lint: Lint) -> None:
    write("comm.py", HANG)
    write("train.py", "import comm\n\n\ndef main(rank):\n    comm.save(rank)\n")
    seen = lint_files(["comm.py", "train.py"])
    assert seen.files == 2
    assert [each.path for each in seen.diagnostics] == ["comm.py"]
    assert lint_files(["train.py"]).files == 1, "what it imports was not asked for"


def test_sources_without_their_projects_files_are_one_project(lint: Lint) -> None:
    write(
        "trainer/helpers.py",
        "import torch.distributed as dist\n\n\ndef join():\n    dist.init_process_group()\n",
    )
    write(
        "trainer/train.py",
        "import sys\n\nsys.path.append('..')\nimport torch.distributed as dist\n"
        "from trainer.helpers import join\n"
        "from torch.nn.parallel import DistributedDataParallel\n\n"
        "if __name__ == '__main__':\n    join()\n    if dist.is_initialized():\n        print(1)\n",
    )
    write("tools/other.py", "print(1)\n")
    assert lint(".", select=("DDP115",)) == (0, "", "")


def test_dropout_alike_on_all_ranks_is_information_and_noise_is_not() -> None:
    """Its masks fall on other samples on each rank: it does little harm."""
    samples = Path(__file__).parent / "samples"
    (masks,) = lint_files([str(samples / "DDP205_bad.py")]).diagnostics
    (noise,) = lint_files([str(samples / "DDP205_drawn_bad.py")]).diagnostics
    assert (masks.finding().severity, noise.finding().severity) == ("info", "warning")


def test_an_old_name_that_is_still_read_is_information() -> None:
    sample = Path(__file__).parent / "samples" / "DDP109_bad.py"
    unread, old, _ = lint_files([str(sample)]).diagnostics
    assert (unread.finding().severity, old.finding().severity) == ("error", "info")
    assert "still reads" in old.message


def test_files_far_apart_are_not_looked_up_in_the_whole_disk(tmp_path: Path) -> None:
    loose = tmp_path / "loose.py"
    found = roots([str(loose), str(Path(__file__)), "/srv/elsewhere.py"])
    assert str(tmp_path) in found
    assert "/" not in found


def test_loose_files_have_what_they_have_in_common_as_their_root(tmp_path: Path) -> None:
    assert str(tmp_path) in roots([str(tmp_path / "a" / "one.py"), str(tmp_path / "b" / "two.py")])
