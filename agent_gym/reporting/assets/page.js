"use strict";
(() => {
  const root = document.documentElement;
  const dark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const theme = document.getElementById("theme");
  const name = () => { theme.textContent = dark() ? "Light" : "Dark"; };
  theme.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; name(); });
  name();

  const select = (node) => {
    const range = document.createRange();
    range.selectNodeContents(node);
    const chosen = getSelection();
    chosen.removeAllRanges();
    chosen.addRange(range);
    return document.execCommand("copy");
  };
  document.addEventListener("click", async (event) => {
    const button = event.target.closest?.(".copy");
    if (!button) return;
    const code = button.previousElementSibling;
    let done = false;
    try {
      await navigator.clipboard.writeText(code.textContent);
      done = true;
    } catch {
      done = select(code);
    }
    button.textContent = done ? "Copied" : "Press Ctrl+C";
    setTimeout(() => { button.textContent = "Copy"; }, 1600);
  });
  root.dataset.ready = "yes";
})();
