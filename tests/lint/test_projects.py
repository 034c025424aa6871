"""Whole scripts as people write them, each buggy one with its clean twin."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ddpdoctor.lint.files import collect
from ddpdoctor.lint.linter import lint
from tests.lint.test_samples import SAMPLES, expected, informed

PROJECTS = SAMPLES / "projects"


@pytest.mark.parametrize("name", sorted(each.name for each in PROJECTS.iterdir()))
def test_a_script_yields_the_marked_lines_and_no_others(name: str, tmp_path: Path) -> None:
    target = tmp_path / name
    if (PROJECTS / name).is_dir():
        shutil.copytree(PROJECTS / name, target)
    else:
        shutil.copy(PROJECTS / name, target)
    result = lint(list(collect([str(target)])))
    found = {(Path(each.path).name, each.line, each.code) for each in result.diagnostics}
    files = list(target.glob("*.py")) if target.is_dir() else [target]
    marked = {(file.name, *mark) for file in files for mark in expected(file)}
    assert found == marked | {(file.name, *mark) for file in files for mark in informed(file)}
    assert bool(marked) == ("bad" in name)


def test_a_script_finds_its_package_above_the_folder_in_which_lint_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("tools", "seg"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").touch()
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "seg" / "hooks.py").write_text(
        "import weakref\nimport torch.distributed as dist\n"
        "class Hook:\n    def __init__(self, loop):\n        self.loop = weakref.ref(loop)\n"
        "    def after(self):\n        if dist.get_rank() == 0:\n            self.loop().shared()\n"
    )
    (tmp_path / "tools" / "train.py").write_text(
        "import torch.distributed as dist\nfrom seg.hooks import Hook\n"
        "class Loop:\n    def shared(self):\n        dist.barrier()\n"
        "dist.init_process_group('gloo')\nHook(Loop()).after()\n"
    )
    monkeypatch.chdir(tmp_path / "tools")
    found = lint(["train.py", "../seg/hooks.py"]).diagnostics
    assert [(each.path, each.line, each.code) for each in found] == [
        ("../seg/hooks.py", 8, "DDP401")
    ]


def test_a_module_that_is_named_like_its_package_holds_none_of_its_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "flow" / "model").mkdir(parents=True)
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "flow" / "model" / "flow.py").write_text("class Flow:\n    pass\n")
    (tmp_path / "flow" / "model" / "waiting.py").write_text(
        "import torch.distributed as dist\ndef together():\n    dist.barrier()\n"
    )
    (tmp_path / "flow" / "model" / "train.py").write_text(
        "import torch.distributed as dist\nfrom flow.model.waiting import together\n"
        "def train():\n    if dist.get_rank() == 0:\n        together()\n"
    )
    (tmp_path / "flow" / "main.py").write_text(
        "import torch.distributed as dist\nfrom flow.model.train import train\n"
        "dist.init_process_group('gloo')\ntrain()\n"
    )
    monkeypatch.chdir(tmp_path)
    found = lint(list(collect(["."]))).diagnostics
    assert [(each.path, each.line, each.code) for each in found] == [
        ("flow/model/train.py", 5, "DDP401")
    ]


@pytest.mark.parametrize("says", ["from .launch import launch", "from .launch import *"])
def test_what_a_package_itself_calls_by_the_name_of_a_module_of_its_is_no_module(
    says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "core").mkdir()
    (tmp_path / "core" / "__init__.py").write_text(f"{says}\n")
    (tmp_path / "core" / "launch.py").write_text(
        "import torch.distributed as dist\ndef launch(work):\n"
        "    if dist.get_rank() == 0:\n        work()\n"
    )
    (tmp_path / "train.py").write_text(
        "import torch.distributed as dist\nfrom core import launch\n"
        "def work():\n    dist.barrier()\n"
        "dist.init_process_group('gloo')\nlaunch(work)\n"
    )
    monkeypatch.chdir(tmp_path)
    found = lint(list(collect(["."]))).diagnostics
    assert [(each.path, each.line, each.code) for each in found] == [
        ("core/launch.py", 4, "DDP401")
    ]


def test_a_module_that_is_named_like_a_library_imports_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "tools" / "__init__.py").touch()
    (tmp_path / "tools" / "tqdm.py").write_text(
        "from tqdm import tqdm as _tqdm\n"
        "def shown(*args, **kwargs):\n    return _tqdm(*args, **{'mininterval': 1, **kwargs})\n"
    )
    (tmp_path / "train.py").write_text(
        "import torch.distributed as dist\nfrom tools.tqdm import shown\nfrom data import Records\n"
        "from torch.utils.data import DataLoader, DistributedSampler\n"
        "dist.init_process_group('gloo')\nrecords = Records()\n"
        "sampler = DistributedSampler(records, shuffle=False)\n"
        "batches = DataLoader(records, sampler=sampler)\n"
        "if dist.get_rank() == 0:\n    batches = shown(batches, total=len(batches))\n"
        "for batch in batches:\n    dist.barrier()\n"
    )
    monkeypatch.chdir(tmp_path)
    assert lint(list(collect(["."]))).diagnostics == []


def test_nor_do_others_of_its_package_mean_it_where_they_import_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "tools" / "__init__.py").touch()
    (tmp_path / "tools" / "torch.py").write_text(
        "import torch\ndef mean(values):\n    return torch.stack(values).mean()\n"
    )
    (tmp_path / "tools" / "ranks.py").write_text(
        "from torch import distributed as dist\ndef writes():\n    return dist.get_rank() == 0\n"
    )
    (tmp_path / "train.py").write_text(
        "import torch.distributed as dist\nfrom tools.ranks import writes\n"
        "dist.init_process_group('gloo')\nif writes():\n    dist.barrier()\n"
    )
    monkeypatch.chdir(tmp_path)
    found = lint(list(collect(["."]))).diagnostics
    assert [(each.code, each.confidence) for each in found] == [("DDP401", "certain")]


def test_a_module_that_is_named_like_its_package_may_import_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "net" / "models").mkdir(parents=True)
    (tmp_path / "pyproject.toml").touch()
    for folder in ("net", "net/models"):
        (tmp_path / folder / "__init__.py").touch()
    (tmp_path / "net" / "ranks.py").write_text(
        "import torch.distributed as dist\ndef meet():\n    dist.barrier()\n"
    )
    (tmp_path / "net" / "models" / "net.py").write_text(
        "from net.ranks import meet\ndef share():\n    meet()\n"
    )
    (tmp_path / "train.py").write_text(
        "import torch.distributed as dist\nfrom net.models.net import share\n"
        "dist.init_process_group('gloo')\nif dist.get_rank() == 0:\n    share()\n"
    )
    monkeypatch.chdir(tmp_path)
    found = lint(list(collect(["."]))).diagnostics
    assert [(each.code, each.confidence) for each in found] == [("DDP401", "certain")]


def test_a_folder_has_modules_without_a_file_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "src" / "deep").mkdir(parents=True)
    (tmp_path / "src" / "deep" / "__init__.py").write_text(
        "import torch.distributed as dist\ndef meet():\n    dist.barrier()\n"
    )
    (tmp_path / "src" / "ranks.py").write_text(
        "import torch.distributed as dist\ndef is_first():\n    return dist.get_rank() == 0\n"
    )
    (tmp_path / "train.py").write_text(
        "import torch.distributed as dist\nimport src.ranks\nimport src.deep\n"
        "dist.init_process_group('gloo')\nif src.ranks.is_first():\n    src.deep.meet()\n"
    )
    monkeypatch.chdir(tmp_path)
    found = lint(list(collect(["."]))).diagnostics
    assert [(each.code, each.confidence) for each in found] == [("DDP401", "certain")]


def test_what_who_joins_a_group_sets_in_a_module_is_open_where_nobody_joins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "comm.py").write_text(
        "import torch.distributed as dist\n_LOCAL = None\n"
        "def local_rank():\n    if _LOCAL is None:\n        return dist.get_rank()\n"
        "    return dist.get_rank(group=_LOCAL)\n"
    )
    (tmp_path / "launch.py").write_text(
        "import comm\nimport torch.distributed as dist\n"
        "def launch(run):\n    dist.init_process_group('nccl')\n"
        "    comm._LOCAL = dist.new_subgroups()[0]\n    run()\n"
    )
    (tmp_path / "look.py").write_text(
        "import comm\nimport torch\n"
        "if __name__ == '__main__':\n    torch.cuda.set_device(comm.local_rank())\n"
    )
    monkeypatch.chdir(tmp_path)
    assert "DDP106" not in {each.code for each in lint(list(collect(["."]))).diagnostics}


def test_the_same_is_found_however_the_sources_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sources that came without their project's files, and a project beside them."""
    drivers, utils, beside = (tmp_path / each for each in ("code/drivers", "code/utils", "mine"))
    for folder in (drivers, utils, beside):
        folder.mkdir(parents=True)
    (beside / "pyproject.toml").touch()
    (utils / "waiting.py").write_text(
        "import torch.distributed as dist\ndef together():\n    dist.barrier()\n"
    )
    (drivers / "train.py").write_text(
        "import torch.distributed as dist\nfrom utils.waiting import together\n"
        "dist.init_process_group('gloo')\nif dist.get_rank() == 0:\n    together()\n"
    )

    def found(here: Path, name: str) -> list[tuple[str, int, str]]:
        monkeypatch.chdir(here)
        result = lint(list(collect([name])))
        return [(Path(each.path).name, each.line, each.code) for each in result.diagnostics]

    named = [(beside, "../code"), (drivers, ".."), (tmp_path, "code"), (tmp_path / "code", ".")]
    named += [(here, str(tmp_path / "code")) for here in (tmp_path, beside, drivers)]
    assert {tuple(found(*each)) for each in named} == {(("train.py", 5, "DDP401"),)}


def test_a_module_beside_a_script_above_is_found_from_the_folders_below_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`python code/src/run.py` finds all that lies in src, whoever asks for it."""
    tasks = tmp_path / "code" / "src" / "tasks"
    tasks.mkdir(parents=True)
    (tasks.parent / "settings.py").write_text(
        "import torch.distributed as dist\ndist.init_process_group('gloo')\n"
        "talks = dist.get_rank() < 1\n"
    )
    (tasks / "fit.py").write_text(
        "import torch.distributed as dist\nfrom settings import talks\n"
        "def fit():\n    if talks:\n        dist.barrier()\n"
    )
    (tasks.parent / "run.py").write_text("from tasks.fit import fit\nfit()\n")
    monkeypatch.chdir(tmp_path)
    (found,) = lint(list(collect(["."]))).diagnostics
    assert (Path(found.path).name, found.line, found.code) == ("fit.py", 5, "DDP401")


@pytest.mark.parametrize(
    "written",
    [
        "sys.path.append('core')",
        "sys.path.insert(0, './core/')",
        "sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'core'))",
        "HERE = Path(__file__).resolve().parent\nsys.path.append(str(HERE / 'core'))",
        "sys.path.append(str(Path(__file__).parents[1] / 'tools' / 'core'))",
        "sys.path.append(os.path.join(os.path.split(sys.path[0])[0], 'tools', 'core'))",
        "if True:\n    sys.path.append(os.path.join(os.getcwd(), 'core'))",
    ],
)
def test_what_a_file_puts_on_its_path_is_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    (tmp_path / "tools" / "core").mkdir(parents=True)
    (tmp_path / "tools" / "core" / "data.py").write_text(
        "import torch.distributed as dist\n\n\ndef save():\n    dist.barrier()\n"
    )
    script = (
        "import os\nimport sys\nfrom pathlib import Path\n\nimport torch.distributed as dist\n\n"
        f"{written}\nfrom data import save\n\ndist.init_process_group('gloo')\n"
        "if dist.get_rank() == 0:\n    save()\n"
    )
    (tmp_path / "tools" / "train.py").write_text(script)
    monkeypatch.chdir(tmp_path)
    found = lint(["tools/train.py", "tools/core/data.py"]).diagnostics
    assert [(each.path, each.line, each.code) for each in found] == [
        ("tools/train.py", len(script.splitlines()), "DDP401")
    ]


def test_what_an_imported_file_puts_on_the_path_is_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`import _paths` adds ../lib by a function: for all that the script imports behind it."""
    (tmp_path / "tools").mkdir()
    (tmp_path / "lib" / "core").mkdir(parents=True)
    (tmp_path / "lib" / "core" / "data.py").write_text(
        "import torch.distributed as dist\n\n\ndef save():\n    dist.barrier()\n"
    )
    (tmp_path / "tools" / "_paths.py").write_text(
        "import os.path as osp\nimport sys\n\n\ndef add(path):\n    if path not in sys.path:\n"
        "        sys.path.insert(0, path)\n\n\nhere = osp.dirname(__file__)\n"
        "add(osp.join(here, '..', 'lib'))\n"
    )
    script = (
        "import torch.distributed as dist\nimport _paths\nfrom core.data import save\n\n"
        "dist.init_process_group('gloo')\nif dist.get_rank() == 0:\n    save()\n"
    )
    (tmp_path / "tools" / "train.py").write_text(script)
    monkeypatch.chdir(tmp_path)
    found = lint(["tools/train.py", "tools/_paths.py", "lib/core/data.py"]).diagnostics
    assert [(each.path, each.line, each.code) for each in found] == [
        ("tools/train.py", len(script.splitlines()), "DDP401")
    ]
