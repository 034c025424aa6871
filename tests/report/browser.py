"""Headless Chromium, driven by its own protocol over a pipe: what it says of pages.

Each is looked at in windows of several widths, light and dark, and its picture is taken.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
WIDTHS = (360, 768, 1280)
SCHEMES = ("light", "dark")
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)
_PATIENCE = 240.0
_TALLEST = 16_000
"""Pixels of a picture; what is below them is more of the same."""

# What can be asserted of any page. Nothing here changes it.
_LOOK = """
(() => {
  const root = document.documentElement, all = (s) => [...document.querySelectorAll(s)];
  const torn = (cell) => [...cell.textContent.matchAll(/\\w+/g)].some((word) => {
    const letters = document.createRange();
    letters.setStart(cell.firstChild, word.index);
    letters.setEnd(cell.firstChild, word.index + word[0].length);
    return letters.getClientRects().length > 1;
  });
  const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (colour) => parts(colour).slice(0, 3).map((part) => part / 255)
    .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, n) => sum + part * [0.2126, 0.7152, 0.0722][n], 0);
  const paper = (each) => {
    for (; each; each = each.parentElement) {
      const colour = getComputedStyle(each).backgroundColor;
      if ((parts(colour)[3] ?? 1) > 0) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const pale = (each) => {
    const style = getComputedStyle(each);
    const ink = light(each.closest("svg") ? style.fill : style.color), under = light(paper(each));
    const [darker, lighter] = [ink, under].sort((a, b) => a - b);
    return (lighter + 0.05) / (darker + 0.05) < 4.5;
  };
  const written = (each) => each.getClientRects().length && !each.closest("title, script, style")
    && [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  return {
    overflow: root.scrollWidth - root.clientWidth,
    small: all("button, summary, input").filter((each) => {
      const box = each.getBoundingClientRect();
      return box.height && (box.height < 24 || box.width < 24);
    }).map((each) => each.textContent),
    spoken: all(".spoken").filter((each) => getComputedStyle(each).position !== "absolute")
      .map((each) => each.textContent),
    torn: all("th").filter(torn).map((each) => each.textContent),
    pale: all("body *").filter((each) => written(each) && pale(each))
      .map((each) => `${each.tagName}.${each.className}: ${each.textContent.slice(0, 40)}`),
    cut: all(".names li").filter((each) => each.scrollWidth > each.clientWidth).length,
  };
})()
"""
# What a reader does with it. The clipboard is another process's.
_USE = """
(async () => {
  const find = (selector) => document.querySelector(selector), seen = {};
  const all = (selector) => [...document.querySelectorAll(selector)];
  const svg = find(".lanes svg");
  if (svg) {
    const before = svg.getAttribute("viewBox");
    find(".lanes .tools button").click();
    seen.zoomed = svg.getAttribute("viewBox") !== before;
    const press = (key) => {
      find(".plot").dispatchEvent(new KeyboardEvent("keydown", { key }));
      return svg.getAttribute("viewBox");
    };
    seen.whole = press("0").startsWith("0 0 1000 ");
    seen.parting = !before.startsWith("0 0 1000 ") && press("p") === before;
    const mark = find(".blocked[data-at]");
    if (mark) {
      mark.dispatchEvent(new MouseEvent("click", { bubbles: true }));
      seen.detail = find(".detail").textContent;
      press("n");
      seen.next = find(".detail").textContent;
      press("b");
      seen.before = find(".detail").textContent;
    }
  }
  const search = find("#search");
  if (search) {
    const type = (text) => {
      search.value = text;
      search.dispatchEvent(new Event("input"));
      return all(".finding").filter((each) => !each.hidden).length;
    };
    seen.searched = { nonsense: type("nonsense"), one: type("barrier"), rank: type("rank 1") };
    type("");
  }
  find("#copy")?.click();
  const copied = find("#copied"), until = performance.now() + PATIENCE;
  while (copied && !copied.textContent && performance.now() < until)
    await new Promise((done) => setTimeout(done, 20));
  seen.copied = copied?.textContent;
  return seen;
})()
"""
_NOTE_LONG_TASKS = """
globalThis.long = [];
new PerformanceObserver((list) => long.push(...list.getEntries().map((each) => each.duration)))
  .observe({ type: "longtask" });
"""
_SEARCH = """
document.querySelector("#search").value = "TYPED";
document.querySelector("#search").dispatchEvent(new Event("input"));
"""
_FRAME = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


class Browser:
    """One window, in which one file is shown after the other."""

    def __init__(self, orders: int, answers: int) -> None:
        self._orders, self._answers = orders, answers
        self._number, self._rest, self._session = 0, b"", ""
        self._answered: dict[int, dict[str, Any]] = {}
        self._happened: list[dict[str, Any]] = []
        target = self.order("Target.createTarget", url="about:blank")["targetId"]
        attached = self.order("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.order(f"{domain}.enable")

    def order(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Have something done, and wait until it is."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._orders, json.dumps(message).encode() + b"\0")
        while self._number not in self._answered:
            self._listen()
        answer = self._answered.pop(self._number)
        assert "error" not in answer, (method, answer["error"])
        return dict(answer["result"])

    def _listen(self) -> None:
        assert select.select([self._answers], [], [], _PATIENCE)[0], "the browser does not answer"
        data = os.read(self._answers, 1 << 20)
        assert data, "the browser is gone"
        *whole, self._rest = (self._rest + data).split(b"\0")
        for each in map(json.loads, whole):
            if "id" in each:
                self._answered[each["id"]] = each
            else:
                self._happened.append(each)

    def show(self, file: Path, width: int, scheme: str) -> None:
        """Load a file, as a reader with such a window and taste would see it."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.order("Emulation.setDeviceMetricsOverride", **size)
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.order("Emulation.setEmulatedMedia", features=[feature])
        self._happened.clear()
        self.order("Page.navigate", url=file.as_uri())
        while not any(each["method"] == "Page.loadEventFired" for each in self._happened):
            self._listen()

    def ask(self, expression: str) -> Any:
        """What an expression comes to, which the policy of the page does not concern."""
        answer = self.order(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def look(self) -> dict[str, Any]:
        """What can be asserted of the page, and what is on the console since it was loaded."""
        seen: dict[str, Any] = self.ask(_LOOK)
        told = ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown")
        console = [each["params"] for each in self._happened if each["method"] in told]
        return {**seen, "console": console}

    def heard(self) -> list[tuple[str, str, dict[str, Any]]]:
        """Role, name and properties of all that is told to who listens to the page, in order."""
        self.order("Accessibility.enable")
        nodes = self.order("Accessibility.getFullAXTree")["nodes"]
        by_number, ordered, rest = {each["nodeId"]: each for each in nodes}, [], nodes[:1]
        while rest:
            ordered.append(node := rest.pop())
            inner = (by_number.get(each) for each in reversed(node.get("childIds", ())))
            rest += filter(None, inner)
        return [
            (
                node["role"]["value"],
                node.get("name", {}).get("value", ""),
                {each["name"]: each["value"].get("value") for each in node.get("properties", ())},
            )
            for node in ordered
            if not node["ignored"]
        ]

    def use(self) -> dict[str, Any]:
        """What its tools do."""
        return dict(self.ask(_USE.replace("PATIENCE", str(1000 * _PATIENCE))))

    def longest_task(self) -> float:
        """Milliseconds, while it is scrolled to its end, zoomed and searched."""
        self.ask(_NOTE_LONG_TASKS)
        height = self.ask("document.documentElement.scrollHeight")
        wheel = {"type": "mouseWheel", "x": 100, "y": 400, "deltaX": 0, "deltaY": height / 20}
        for _ in range(21):
            self.order("Input.dispatchMouseEvent", **wheel)
            self.ask(_FRAME)
        assert self.ask("scrollY") > 0
        self.ask("document.querySelector('.lanes .tools button').click()")
        for typed in ("s", "st", "rank 7", ""):
            self.ask(_SEARCH.replace("TYPED", typed))
            self.ask(_FRAME)
        self.ask("new Promise((done) => setTimeout(done, 200))")  # they are told a little later
        return max(self.ask("long"), default=0.0)

    def picture(self, file: Path) -> None:
        """Of the whole page."""
        size = self.order("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "scale": 1, "width": size["width"]}
        clip["height"] = min(size["height"], _TALLEST)
        taken = self.order("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        file.write_bytes(base64.b64decode(taken["data"]))


@contextlib.contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """One that is gone afterwards; the folder is for its profile."""
    assert CHROMIUM
    to_it, orders = os.pipe()
    answers, from_it = os.pipe()
    profile = folder / "profile"
    # It reads from descriptor 3, and writes to 4.
    script = f'exec "$@" 3<&{to_it} 4>&{from_it}'
    process = subprocess.Popen(
        ["bash", "-c", script, "sh", CHROMIUM, *_FLAGS, f"--user-data-dir={profile}"],
        pass_fds=(to_it, from_it),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_it)
    os.close(from_it)
    try:
        yield Browser(orders, answers)
    finally:
        os.close(orders)  # by which it ends
        os.close(answers)
        process.wait(_PATIENCE)
        _remove(profile)


def _remove(profile: Path) -> None:
    """Its children write to it a moment longer."""
    until = time.monotonic() + 10
    while profile.exists() and time.monotonic() < until:
        shutil.rmtree(profile, ignore_errors=True)
