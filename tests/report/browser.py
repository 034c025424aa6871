"""Headless Chromium, started once for many pages: what it says of each at several widths."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from html import unescape
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
WIDTHS = (360, 768, 1280)

# Runs in a page around the reports, one frame for each report and width. What `look` says of a
# frame is what tests assert.
_SCRIPT = """
const look = async (frame) => {
  const page = frame.contentDocument, view = frame.contentWindow;
  const find = (selector) => page.querySelector(selector);
  const all = (selector) => [...page.querySelectorAll(selector)];
  const seen = { overflow: page.documentElement.scrollWidth - page.documentElement.clientWidth };
  seen.small = all("button, summary, input").filter((each) => {
    const box = each.getBoundingClientRect();
    return box.height && (box.height < 24 || box.width < 24);
  }).map((each) => each.textContent);
  const torn = (cell) => [...cell.textContent.matchAll(/\\w+/g)].some((word) => {
    const letters = page.createRange();
    letters.setStart(cell.firstChild, word.index);
    letters.setEnd(cell.firstChild, word.index + word[0].length);
    return letters.getClientRects().length > 1;
  });
  seen.torn = all("th").filter(torn).map((each) => each.textContent);
  seen.cut = all(".names li").filter((each) => each.scrollWidth > each.clientWidth).length;
  const svg = find(".lanes svg");
  if (svg) {
    const before = svg.getAttribute("viewBox");
    find(".lanes .tools button").click();
    seen.zoomed = svg.getAttribute("viewBox") !== before;
    const press = (key) => {
      find(".plot").dispatchEvent(new view.KeyboardEvent("keydown", { key }));
      return svg.getAttribute("viewBox");
    };
    seen.whole = press("0").startsWith("0 0 1000 ");
    seen.parting = !before.startsWith("0 0 1000 ") && press("p") === before;
    const mark = find(".blocked[data-at]");
    if (mark) {
      mark.dispatchEvent(new view.MouseEvent("click", { bubbles: true }));
      seen.detail = find(".detail").textContent;
    }
  }
  const search = find("#search");
  if (search) {
    const type = (text) => {
      search.value = text;
      search.dispatchEvent(new view.Event("input"));
      return all(".finding").filter((each) => !each.hidden).length;
    };
    seen.searched = { nonsense: type("nonsense"), one: type("barrier"), rank: type("rank 1") };
    type("");
  }
  find("#copy")?.click();
  await new Promise((done) => setTimeout(done, 50));
  seen.copied = find("#copied")?.textContent;
  return seen;
};
addEventListener("load", async () => {
  const seen = {};
  for (const frame of document.querySelectorAll("iframe")) seen[frame.name] = await look(frame);
  document.querySelector("pre").textContent = JSON.stringify(seen);
});
"""


def look(pages: Mapping[str, str], folder: Path) -> tuple[dict[str, Any], str]:
    """What is seen of each page, by "NAME WIDTH", and what stands on the console.

    A picture of all of them side by side stays in the folder.
    """
    assert CHROMIUM
    frames = []
    for name, page in pages.items():
        (folder / f"{name}.html").write_text(page, encoding="utf-8")
        frames += [
            f'<iframe name="{name} {width}" src="{name}.html" width="{width}" height="2400">'
            "</iframe>"
            for width in WIDTHS
        ]
    around = folder / "around.html"
    around.write_text(
        f"<!doctype html><meta charset=utf-8><body>{''.join(frames)}<pre></pre>"
        f"<script>{_SCRIPT}</script>"
    )
    done = subprocess.run(
        [
            CHROMIUM,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--allow-file-access-from-files",
            "--enable-logging=stderr",
            f"--user-data-dir={folder / 'profile'}",
            "--window-size=2500,2450",
            f"--screenshot={folder / 'pages.png'}",
            "--virtual-time-budget=20000",
            "--dump-dom",
            str(around),
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
    )
    shutil.rmtree(folder / "profile", ignore_errors=True)
    told = re.findall(r"<pre>(.*?)</pre>", done.stdout, re.DOTALL)
    assert told, done.stderr
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return json.loads(unescape(told[-1])), "\n".join(console)
