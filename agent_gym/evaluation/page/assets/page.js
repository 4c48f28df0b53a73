"use strict";
// What all pages do: light or dark, on paper always light, and commands that can be copied.
const page = (() => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (root.dataset.theme || (system.matches ? "dark" : "light")) === "dark";
  const button = document.getElementById("theme");
  const listeners = [];
  const changed = (paper = false) => {
    button.textContent = dark() ? "Light" : "Dark";
    for (const listen of listeners) listen(paper);
  };
  const wear = (theme, paper = false) => {
    if (theme) root.dataset.theme = theme;
    else delete root.dataset.theme;
    changed(paper);
  };
  button.addEventListener("click", () => wear(dark() ? "light" : "dark"));
  system.addEventListener("change", () => changed());
  let screen = "";
  addEventListener("beforeprint", () => { screen = root.dataset.theme || ""; wear("light", true); });
  addEventListener("afterprint", () => wear(screen));

  // Colours of the page as canvases need them; the style itself says light and dark at once.
  const probe = document.createElement("span");
  probe.hidden = true;
  document.body.append(probe);
  const colour = (name) => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };

  const select = (node) => {
    const range = document.createRange();
    range.selectNodeContents(node);
    const chosen = getSelection();
    chosen.removeAllRanges();
    chosen.addRange(range);
    return document.execCommand("copy");
  };
  document.addEventListener("click", async (event) => {
    const copy = event.target.closest?.(".copy");
    if (!copy) return;
    const code = copy.previousElementSibling;
    let done = false;
    try {
      await navigator.clipboard.writeText(code.textContent);
      done = true;
    } catch {
      done = select(code);
    }
    copy.textContent = done ? "Copied" : "Press Ctrl+C";
    setTimeout(() => { copy.textContent = "Copy"; }, 1600);
  });
  changed();
  root.dataset.ready = "yes";
  return { colour, dark, onTheme: (listen) => listeners.push(listen) };
})();
