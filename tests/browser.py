"""Pages in headless Chromium: what its console says, and what can't be read."""

import html
import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
# .ci/run sets this where it has installed a browser: then no test is skipped.
BROWSER = os.environ.get("GZKCORE_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)
needs_browser = pytest.mark.skipif(BROWSER is None, reason=f"there is none of {', '.join(NAMES)}")
WIDTHS = (400, 1300)
LEAST = 12  # pixels of the letters: 9 points
OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-dev-shm-usage", "--enable-logging=stderr", "--dump-dom", "--window-size=2000,1000",
)  # fmt: skip

FAULTS = """
const faults = (frame) => {
  const [view, page] = [frame.contentWindow, frame.contentDocument], found = [];
  const say = (what, element) =>
    found.push(`${frame.width}: ${what}: ${element.tagName} ${element.textContent.slice(0, 40)}`);
  for (const element of page.body.querySelectorAll("*")) {
    const box = element.getBoundingClientRect(), svg = element.closest("svg");
    if (!box.width || element.closest("defs, clipPath")) continue;
    const isText = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (isText) {
      const to = svg ? element.getScreenCTM() : {a: 1, b: 0};
      const size = parseFloat(view.getComputedStyle(element).fontSize) * Math.hypot(to.a, to.b);
      if (size < LEAST - 0.05) say(`letters of ${size.toFixed(1)} pixels`, element);
    }
    if (svg && !isText) continue;
    const room = svg && svg !== element ? svg.getBoundingClientRect() : {left: 0, right: view.innerWidth};
    if (box.left < room.left - 1 || box.right > room.right + 1) say("cut off", element);
    if (!svg && element.scrollWidth > element.clientWidth + 1 && element.clientWidth)
      say("wider than its box", element);
  }
  if (page.documentElement.scrollWidth > view.innerWidth) say("the page is too wide", page.body);
  return found;
};
addEventListener("load", () => {
  const found = [...document.querySelectorAll("iframe")].flatMap(faults);
  const told = document.createElement("pre");
  told.textContent = JSON.stringify(found);
  document.body.replaceChildren(told);
});
"""


def faults_of(page):
    """Return the errors of a page on the console, and what is cut off or small at either width."""
    with tempfile.TemporaryDirectory() as folder:
        return _faults(page, folder)


def _faults(page, folder):
    source = html.escape(Path(page).read_text(encoding="utf-8"))
    frames = "".join(
        f'<iframe width="{w}" height="900" style="border:0" srcdoc="{source}"></iframe>'
        for w in WIDTHS
    )
    opened = Path(folder, "opened.html")
    script = FAULTS.replace("LEAST", str(LEAST))
    opened.write_text(f'<!doctype html><meta charset="utf-8"><script>{script}</script>{frames}')
    command = [BROWSER, *OPTIONS, f"--user-data-dir={folder}/profile", opened.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    told = re.search("<pre>(.*)</pre>", done.stdout, re.DOTALL)
    assert told, f"{BROWSER} opened no page:\n{done.stderr}"
    console = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
    return console + json.loads(html.unescape(told[1]))
