"use strict";
for (const tools of document.querySelectorAll(".tools")) tools.hidden = false;

// Lanes: what is drawn stays as it is, the window upon it is moved and narrowed.
for (const figure of document.querySelectorAll(".lanes")) {
  const svg = figure.querySelector("svg"), axis = figure.querySelector(".axis");
  const plot = figure.querySelector(".plot"), detail = figure.querySelector(".detail");
  const span = Number(figure.dataset.seconds), height = figure.dataset.height;
  let from = 0, width = 1000;
  const show = () => {
    width = Math.min(1000, Math.max(0.01, width));
    from = Math.min(1000 - width, Math.max(0, from));
    svg.setAttribute("viewBox", `${from} 0 ${width} ${height}`);
    const seen = span * width / 1000, first = span * from / 1000;
    const least = seen / Math.max(2, Math.min(6, plot.clientWidth / 100));
    const power = 10 ** Math.floor(Math.log10(least));
    const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= least);
    axis.replaceChildren();
    for (let n = Math.ceil(first / step - 1e-9); n * step < first + seen * 0.92; n++) {
      const tick = document.createElement("span");
      tick.style.left = `${100 * (n * step - first) / seen}%`;
      tick.textContent = `${Number((n * step).toPrecision(8))} s`;
      axis.append(tick);
    }
  };
  const zoom = (factor, at = 0.5) => {
    const middle = from + at * width;
    width = Math.min(1000, Math.max(0.01, width * factor));
    from = middle - at * width;
    show();
  };
  const pan = (share) => { from += share * width; show(); };
  const hasParted = "parting" in figure.dataset;
  const around = hasParted ? Math.max(10, (1000 - Number(figure.dataset.parting)) * 1.6) : 1000;
  const focus = () => {
    width = around;
    from = 1000 - width;
    show();
  };
  // All that is drawn in a lane, in the order of time.
  const told = [...svg.querySelectorAll("g[data-who] > :not(.life)")];
  const begins = (each) => Number(each.getAttribute("x") ?? /M([\d.]+)/.exec(each.getAttribute("d"))[1]);
  told.sort((one, other) => begins(one) - begins(other));
  let chosen = null;
  const tell = (each) => {
    chosen?.classList.remove("chosen");
    chosen = each;
    chosen.classList.add("chosen");
    const who = each.parentElement.dataset.who;
    detail.textContent = `${who ? `${who}, ` : ""}${each.querySelector("title").textContent}`;
    const place = each.dataset.at;
    const line = place && [...document.querySelectorAll("[data-place]")]
      .find((other) => other.dataset.place === place);
    const stack = line?.closest("article")?.querySelector(".stack");
    for (const part of [stack, line]) if (part) detail.append(part.cloneNode(true));
  };
  const go = (by) => {
    const here = told.indexOf(chosen);
    const next = here < 0 ? told.findIndex((each) => begins(each) >= from) : here + by;
    if (!told[next]) return;
    tell(told[next]);
    const at = begins(chosen);
    if (at < from || at > from + width) {
      from = at - width / 2;
      show();
    }
  };
  const moves = {
    p: focus, n: () => go(1), b: () => go(-1),
    "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), "0": () => zoom(1e9),
    ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2),
  };
  const bar = document.createElement("p");
  bar.className = "tools";
  for (const [sign, said] of [["+", "Zoom in"], ["-", "Zoom out"], ["0", "All"],
    ["p", "The parting"], ["ArrowLeft", "Earlier"], ["ArrowRight", "Later"],
    ["b", "Event before"], ["n", "Next event"]]) {
    if (sign === "p" && !hasParted) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = said;
    button.addEventListener("click", moves[sign]);
    bar.append(button, " ");
  }
  figure.querySelector(".legend").before(bar);
  detail.textContent = "Click into a lane to read what was there, and at which line.";
  plot.tabIndex = 0;
  plot.setAttribute("aria-label", "lanes: plus and minus zoom, arrows move, 0 shows all, "
    + "n and b tell the next event and the one before");
  plot.setAttribute("role", "group");
  // Most of a job is not where its ranks parted: there the view begins, if it is a small part.
  if (around < 500) {
    focus();
    detail.prepend("Shown is the end, where the ranks parted; “All” shows the rest. ");
  }
  plot.addEventListener("keydown", (event) => {
    if (!moves[event.key] || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    moves[event.key]();
  });
  plot.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const box = plot.getBoundingClientRect();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, (event.clientX - box.left) / box.width);
  }, { passive: false });
  let held = null;
  plot.addEventListener("pointerdown", (event) => { held = event.clientX; });
  plot.addEventListener("pointermove", (event) => {
    if (held === null || !event.buttons) return;
    pan((held - event.clientX) / plot.clientWidth);
    held = event.clientX;
  });
  plot.addEventListener("click", (event) => {
    if (event.target.matches("svg [d], svg [x]")) tell(event.target);
  });
}

// Search: all words must be there; "rank 12" is in "ranks 8-15" too.
const search = document.getElementById("search");
search?.addEventListener("input", () => {
  const rank = /^ranks?\s+(\d+)$/i.exec(search.value.trim());
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const named = (text) => [...text.matchAll(/ranks? ([\d, -]+)/g)].some((found) =>
    found[1].split(",").some((part) => {
      const [first, last = first] = part.split("-").map(Number);
      return first <= rank[1] && rank[1] <= last;
    }));
  let left = 0;
  for (const each of document.querySelectorAll(".finding, .ranks tbody tr, .names li")) {
    const text = each.textContent;
    const fits = rank ? named(text) : words.every((word) => text.toLowerCase().includes(word));
    each.classList.toggle("off", !fits);
    if (each.matches(".finding")) {
      each.hidden = !fits;
      left += fits;
    }
  }
  const found = document.getElementById("found");
  found.textContent = words.length ? `${left} findings` : "";
});

const copy = document.getElementById("copy");
copy?.addEventListener("click", async () => {
  const text = document.querySelector("#issue pre");
  try {
    await navigator.clipboard.writeText(text.textContent);
  } catch {
    getSelection().selectAllChildren(text);
    document.execCommand("copy");
  }
  document.getElementById("copied").textContent = "copied";
});
