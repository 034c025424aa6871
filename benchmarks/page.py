"""What a page of 10 000 ranks and 100 000 findings costs who writes it, and who looks at it.

python -m benchmarks.page [--repeats 5]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from ddpdoctor.report.model import render
from tests.report.browser import CHROMIUM, browser
from tests.report.run_samples import a_crowd


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        page, report = folder / "page.html", a_crowd(folder)
        written = []
        for _ in range(repeats):
            began = time.monotonic()
            page.write_text(render(report, "html"), encoding="utf-8")
            written.append(time.monotonic() - began)
        print(f"{page.stat().st_size / 1e6:.2f} MB, written in {_told(written, 's')}")
        if CHROMIUM is None:
            print("there is no Chromium: nobody has looked at it")
            return
        with browser(folder) as window:
            longest = []
            for _ in range(repeats):
                window.show(page, 1280, "light")
                longest.append(window.longest_task())
        slow = _told(longest, "ms") if any(longest) else "none over 50 ms, which is what counts"
        print(f"the longest task while it is scrolled, zoomed and searched: {slow}")


def _told(values: list[float], unit: str) -> str:
    return (
        f"{statistics.median(values):.3g} {unit} (median of {len(values)}, most {max(values):.3g})"
    )


if __name__ == "__main__":
    main()
