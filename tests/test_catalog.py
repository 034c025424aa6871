"""The catalogue: what its loader refuses, and that the real pages and reproducers are in order."""

import ast
import re
import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddpdoctor import catalog
from ddpdoctor.catalog import CatalogError, Entry, Pitfall, UnknownCode
from ddpdoctor.environment.checks.finding import TITLES

PAGE = """---
code: DDP101
title: dict-config
family: launch
symptoms: [crash]
severity: error
sources: [S0]
summary: What breaks.
remedy: What holds.
---

## What happens

It breaks.

## Why

Because.

## Example

Wrong.

## Use instead

Right.

## What holds

This.

## What does not hold

That.

## How to verify

Look.

## See also

DDP102
"""

PROOF = '''"""A proof."""
from ddpdoctor.reproducer import broken, documented, fix


@broken(ranks="nonzero", launches=3)
def form() -> None:
    """Do it wrong.

    At length.
    """
    join()  # <-- DDP101
    other()  # <-- DDP102


@documented(source="S0, error 2")
def advice() -> None:
    """Do it otherwise."""


@fix()
def cure() -> None:
    """Do it right."""


def helper() -> None:
    """Help."""
'''


def write(folder: Path, stem: str = "dict_config", page: str = PAGE, proof: str = PROOF) -> Path:
    (folder / f"{stem}.md").write_text(page)
    (folder / f"{stem}.py").write_text(proof)
    return folder


def test_a_page_and_its_proof_become_a_pitfall(tmp_path: Path) -> None:
    pitfall = catalog.load(write(tmp_path))["DDP101"]
    assert pitfall.title == "dict-config"
    assert pitfall.sections["Why"] == "Because."
    assert [(v.kind, v.name) for v in pitfall.variants] == [
        ("broken", "form"),
        ("documented", "advice"),
        ("fix", "cure"),
    ]
    assert pitfall.broken.summary == "Do it wrong."
    assert (pitfall.broken.ranks, pitfall.broken.launches) == ("nonzero", 3)
    assert pitfall.variants[1].source == "S0, error 2"


def test_a_variant_may_name_the_command_that_starts_it(tmp_path: Path) -> None:
    said = '@fix(launch="env A=1 torchrun --master-port={port} {proof} {variant}")'
    cure = catalog.load(write(tmp_path, proof=PROOF.replace("@fix()", said)))["DDP101"].variants[2]
    assert cure.command("a folder/x.py", nproc=4, port=7)[2:] == [
        *("torchrun", "--master-port=7", "a folder/x.py", "cure"),
    ]
    assert cure.launcher == "torchrun"


def test_only_the_lines_marked_with_this_code_are_culprits(tmp_path: Path) -> None:
    pitfall = catalog.load(write(tmp_path))["DDP101"]
    marked = PROOF.splitlines().index("    join()  # <-- DDP101") + 1
    assert pitfall.broken.culprits == (marked,)
    assert pitfall.variants[1].culprits == ()


def test_the_pitfalls_come_in_the_order_of_their_codes(tmp_path: Path) -> None:
    write(tmp_path, "a", PAGE.replace("DDP101", "DDP504"))
    write(tmp_path, "b")
    assert list(catalog.load(tmp_path)) == ["DDP101", "DDP504"]


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ("no front matter", "dict_config.md:1: no front matter"),
        (PAGE.replace("code: DDP101\n", ""), "gives no code"),
        (PAGE.replace("code: DDP101", "code: 101"), "gives no code"),
        (PAGE.replace("code: DDP101", "code: DDP1011"), "code: String should match"),
        (PAGE.replace("code: DDP101", "code: DDP801"), "code: String should match"),
        (PAGE.replace("[crash]", "[explosion]"), "symptoms.0: "),
        (PAGE.replace("remedy: What holds.\n", ""), "remedy: Field required"),
        (PAGE.replace("sources: [S0]", "sources: [S0]\nsurces: []"), "surces: Extra inputs"),
        (PAGE.replace("sources: [S0]", "sources: [S0"), "dict_config.md: while parsing"),
        (PAGE.replace("## Why", "## Where"), "no section Why"),
    ],
)
def test_a_malformed_page_is_one_line_that_names_it(
    tmp_path: Path, page: str, message: str
) -> None:
    with pytest.raises(CatalogError) as caught:
        catalog.load(write(tmp_path, page=page))
    assert "dict_config.md" in str(caught.value)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("proof", "message"),
    [
        ("def (", "dict_config.py:1: "),
        (PROOF.replace("@fix()", ""), "at least one @fix"),
        (PROOF.replace('@broken(ranks="nonzero", launches=3)', "@fix()"), "needs one @broken"),
        (PROOF.replace("@fix()", "@broken()"), "needs one @broken"),
        (PROOF.replace('"""Do it right."""', "pass"), "dict_config.py:21: cure says not"),
        (PROOF.replace("launches=3", 'launch="torchrun {what}"'), "launch of form cannot be"),
        (PROOF.replace("launches=3", "launches=3 + MORE"), "dict_config.py:6: @broken takes"),
        (PROOF.replace("launches=3", "lunches=3"), "dict_config.py:6: lunches: Extra"),
    ],
)
def test_a_malformed_proof_is_one_line_that_names_it(
    tmp_path: Path, proof: str, message: str
) -> None:
    with pytest.raises(CatalogError) as caught:
        catalog.load(write(tmp_path, proof=proof))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_page_without_proof_is_refused(tmp_path: Path) -> None:
    (tmp_path / "dict_config.md").write_text(PAGE)
    with pytest.raises(CatalogError, match=r"its proof dict_config\.py is missing"):
        catalog.load(tmp_path)


def test_a_code_used_twice_names_both_pages(tmp_path: Path) -> None:
    write(tmp_path, "a")
    write(tmp_path, "b")
    with pytest.raises(CatalogError, match=r"b\.md: DDP101 is already the code of a\.md"):
        catalog.load(tmp_path)


def test_an_empty_catalogue_is_an_error_and_not_a_clean_bill(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="no page of a pitfall"):
        catalog.load(tmp_path)


@pytest.fixture
def five(tmp_path: Path) -> dict[str, Pitfall]:
    titles = {
        "DDP101": "dict-config",
        "DDP201": "premature-sampler",
        "DDP301": "unused-parameters",
        "DDP501": "checkpoint-race",
        "DDP504": "ema-deadlock",
    }
    for code, title in titles.items():
        page = PAGE.replace("DDP101", code).replace("dict-config", title)
        write(tmp_path, title, page, PROOF)
    return catalog.load(tmp_path)


@pytest.mark.parametrize(
    ("wanted", "ignored", "chosen"),
    [
        ([], [], ["DDP101", "DDP201", "DDP301", "DDP501", "DDP504"]),
        (["DDP504"], [], ["DDP504"]),
        (["ddp5"], [], ["DDP501", "DDP504"]),
        (["EMA-deadlock", "DDP101"], [], ["DDP101", "DDP504"]),
        (["DDP5", "DDP504"], ["checkpoint-race"], ["DDP504"]),
        ([], ["DDP1", "DDP2", "DDP3"], ["DDP501", "DDP504"]),
        (["DDP1"], ["DDP101"], []),
    ],
)
def test_codes_prefixes_and_titles_select(
    five: dict[str, Pitfall], wanted: list[str], ignored: list[str], chosen: list[str]
) -> None:
    assert [p.code for p in catalog.select(five, wanted, ignored)] == chosen


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("DDP502", "did you mean DDP501 (checkpoint-race) or DDP504"),
        ("ema-dedlock", "did you mean DDP504 (ema-deadlock)?"),
        ("zzz", "`ddpdoctor check --list` has them all"),
        ("", "`ddpdoctor check --list` has them all"),
    ],
)
def test_an_unknown_code_is_told_with_the_nearest_ones(
    five: dict[str, Pitfall], name: str, hint: str
) -> None:
    for wanted, ignored in (([name], []), ([], [name])):
        with pytest.raises(UnknownCode) as caught:
            catalog.select(five, wanted, ignored)
        assert repr(name) in str(caught.value)
        assert hint in str(caught.value)


@given(page=st.text(), proof=st.text(alphabet=st.characters(codec="utf-8")))
def test_whatever_stands_in_a_page_is_loaded_or_refused_in_one_line(
    tmp_path_factory: pytest.TempPathFactory, page: str, proof: str
) -> None:
    folder = tmp_path_factory.mktemp("catalogue")
    (folder / "x.md").write_text(f"---\n{page}\n---\n", encoding="utf-8", errors="replace")
    (folder / "x.py").write_text(proof, encoding="utf-8")
    with pytest.raises(CatalogError) as caught:
        catalog.load(folder)
    assert len(str(caught.value).splitlines()) == 1


REAL = catalog.load()
ENTRIES = catalog.entries()


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
class TestEveryPage:
    def test_its_file_is_named_after_it(self, entry: Entry) -> None:
        assert entry.page.stem == entry.title.replace("-", "_")

    def test_it_cites_its_sources_and_every_section_says_something(self, entry: Entry) -> None:
        assert entry.sources
        assert all(text for text in entry.sections.values())

    def test_its_sections_are_those_of_every_page(self, entry: Entry) -> None:
        names = list(entry.sections)
        wanted = (
            ["What happens", "Why", "What holds", "What does not hold", "Example", "Use instead"]
            if isinstance(entry, Pitfall)
            else ["What happens", "Why", "What to do"]
        )
        assert [name for name in wanted if name not in names] == []
        assert names[:2] == ["What happens", "Why"]
        assert names[-2:] == ["How to verify", "See also"]
        if "Example" in names:
            assert names[names.index("Example") + 1] == "Use instead"

    def test_it_says_how_to_see_that_ones_own_job_is_cured(self, entry: Entry) -> None:
        assert len(entry.sections["How to verify"].split()) >= 5

    def test_a_wrong_example_and_a_right_one_are_python_and_differ(self, entry: Entry) -> None:
        shown = [
            re.findall(r"```python\n(.*?)\n```", entry.sections.get(name, ""), re.DOTALL)
            for name in ("Example", "Use instead")
        ]
        if isinstance(entry, Pitfall):
            assert all(len(blocks) >= 1 for blocks in shown)
            assert shown[0] != shown[1]
        for code in [*shown[0], *shown[1]]:
            ast.parse(textwrap.dedent(code))

    def test_what_a_table_shows_of_it_is_one_short_line(self, entry: Entry) -> None:
        lines = [entry.summary, entry.remedy]
        if isinstance(entry, Pitfall):
            lines += [variant.summary for variant in entry.variants]
        assert [line for line in lines if "\n" in line or not 0 < len(line) <= 100] == []

    def test_the_codes_it_refers_to_have_pages(self, entry: Entry) -> None:
        named = re.findall(r"\bDDP\d+\b", " ".join(entry.sections.values()))
        assert set(named) - set(ENTRIES) == set()


@pytest.mark.parametrize("pitfall", REAL.values(), ids=REAL)
class TestEveryProof:
    def test_every_advice_cites_a_source(self, pitfall: Pitfall) -> None:
        assert all(v.source for v in pitfall.variants if v.kind == "documented")

    def test_the_line_that_a_diagnosis_must_name_is_marked(self, pitfall: Pitfall) -> None:
        assert pitfall.broken.culprits


def test_every_code_that_a_command_may_give_has_a_page() -> None:
    package = Path(catalog.__file__).parent
    sources = (path.read_text("utf-8") for path in package.rglob("*.py"))
    given = {code for source in sources for code in re.findall(r"\bDDP[1-7]\d\d\b", source)}
    assert given - set(ENTRIES) == set()


def test_what_is_found_is_what_is_selected_of_all() -> None:
    for wanted in ([], ["DDP4"], ["unused-parameters", "DDP104"], ["DDP6", "gpu-in-use"]):
        assert catalog.find(wanted) == catalog.select(catalog.entries(), wanted)
    with pytest.raises(UnknownCode, match="did you mean DDP301"):
        catalog.find(["unused-parameter"])


def test_a_title_leads_to_one_code() -> None:
    titles = [title for entry in ENTRIES.values() for title in (entry.title, *entry.aliases)]
    assert len(titles) == len(set(titles))


def test_the_codes_of_env_are_called_as_their_pages_are() -> None:
    assert {code: ENTRIES[code].title for code in TITLES} == TITLES


def test_the_five_named_pitfalls_are_there() -> None:
    named = ("DDP101", "DDP201", "DDP301", "DDP501", "DDP504")
    assert [REAL[code].title for code in named] == [
        "dict-config",
        "premature-sampler",
        "unused-parameters",
        "checkpoint-race",
        "ema-deadlock",
    ]
