"""What Python warns of is recorded, and shown as ever."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ddpdoctor.evidence import LOG_NAME, RankReader

SCRIPT = """
import sys, warnings
from pathlib import Path
from ddpdoctor.watch import warned
from ddpdoctor.watch.log import Log

warnings.simplefilter("always")
log = Log()
if len(sys.argv) > 1:
    log.open(Path(sys.argv[1]), pid=1, boot="", torch="", world_size=1)
    warned.install(log)
for _ in range(3):
    warnings.warn("mind the gap")
with warnings.catch_warnings(record=True) as kept:
    warnings.warn("kept")
print(len(kept))
"""


def test_a_warning_is_written_once_a_line_and_shown_as_without_the_watch(tmp_path: Path) -> None:
    def output(*arguments: str) -> tuple[str, str]:
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, *arguments],
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout, done.stderr

    assert output(str(tmp_path / LOG_NAME.format(rank=0))) == output()
    reader = RankReader(tmp_path, 0, 1)
    reader.poll()
    assert [warned.message for warned in reader.evidence.warnings] == ["mind the gap", "kept"]


DEPRECATED = """
import sys, warnings
from torch.nn import parallel
from ddpdoctor.watch import wrappers, warned
from ddpdoctor.watch.log import Log

LIBRARY = \"""
def build(wrapper, module):
    warnings.warn("goes soon", FutureWarning, stacklevel=2)
\"""
exec(compile(LIBRARY, "<library>", "exec"))
parallel.DistributedDataParallel.__init__ = build
if len(sys.argv) > 1:
    log = Log()
    warned.install(log)
    wrappers.install(log)
parallel.DistributedDataParallel(None)
"""


def test_a_warning_about_who_calls_names_the_line_that_it_would_without_us(tmp_path: Path) -> None:
    (script := tmp_path / "train.py").write_text(DEPRECATED)

    def said(*arguments: str) -> str:
        command = [sys.executable, str(script), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False).stderr

    assert said("watched") == said()
    assert "parallel.DistributedDataParallel(None)" in said("watched")
