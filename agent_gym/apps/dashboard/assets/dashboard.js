// What a page keeps for the reader: the choice of language and theme, marks in lists, the way back.
(() => {
  const year = 31536000;
  const keep = (name, value) => {
    document.cookie = `${name}=${value}; Path=/dashboard; Max-Age=${year}; SameSite=Strict`;
    location.reload();
  };
  document.addEventListener("click", (event) => {
    const pressed = event.target.closest("[data-language], [data-theme]");
    if (!pressed) return;
    if (pressed.dataset.language) keep("agent_gym_language", pressed.dataset.language);
    else keep("agent_gym_theme", pressed.dataset.theme);
  });
  // A table that is sent again keeps the marks that were set in it, and who had the focus.
  const marked = new Map();
  const nameOf = (box) => `${box.name}=${box.value}`;
  let focused = null;
  document.addEventListener("change", (event) => {
    const box = event.target;
    if (box.type === "checkbox" && box.dataset.kept !== undefined) marked.set(nameOf(box), box.checked);
    if (box.dataset.submits !== undefined) box.form.requestSubmit();
  });
  document.addEventListener("focusin", (event) => { focused = event.target.id || null; });
  // The first view needs no script; what is live takes its place, with what was typed in between.
  const parts = "a, button, input, select, summary";
  const replaceEarly = () => {
    const early = document.getElementById("early"), live = document.querySelector("#app .frame");
    if (!early || !live?.querySelector(".blocks")) return;
    const before = [...early.querySelectorAll(parts)], after = [...live.querySelectorAll(parts)];
    let goesOn = null;
    if (before.length === after.length) {
      before.forEach((old, at) => {
        if (old.type !== "hidden" && old.matches("input, select")) {
          after[at].value = old.value;
          after[at].checked = old.checked;
        }
        if (old.localName === "summary") after[at].parentElement.open = old.parentElement.open;
        if (old === document.activeElement) goesOn = after[at];
      });
    }
    early.remove();
    goesOn?.focus({ preventScroll: true });  // not before: what is hidden cannot have the focus
    showCurrent();
  };
  // On a narrow screen the navigation scrolls: where we are shall be seen.
  const showCurrent = () => {
    const here = document.querySelector(".side [aria-current]"), list = here?.closest("nav");
    if (list) list.scrollLeft = here.offsetLeft - (list.clientWidth - here.offsetWidth) / 2;
  };
  document.addEventListener("scroll", (event) => {
    const list = event.target;
    if (list.matches?.(".side nav")) list.classList.toggle("scrolled", list.scrollLeft > 0);
  }, true);
  document.addEventListener("DOMContentLoaded", () => {
    showCurrent();
    new MutationObserver(() => {
      replaceEarly();
      for (const box of document.querySelectorAll("input[data-kept]")) {
        const said = marked.get(nameOf(box));
        if (said !== undefined && box.checked !== said) box.checked = said;
      }
      if (focused && document.activeElement === document.body) {
        document.getElementById(focused)?.focus({ preventScroll: true });
      }
    }).observe(document.body, { childList: true, subtree: true });
  });
  // A player of battles is as high as what it shows, so that nothing in it scrolls by itself.
  document.addEventListener("load", (event) => {
    const frame = event.target, inside = frame.matches?.("iframe.viewer") && frame.contentDocument;
    if (!inside) return;
    const fit = () => { frame.style.height = `${inside.documentElement.offsetHeight + 2}px`; };
    new ResizeObserver(fit).observe(inside.body);
  }, true);
  // Charts are drawn for the theme that they began in.
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    const auto = document.querySelector("[data-theme=auto][aria-pressed=true]");
    if (auto && document.querySelector("figure.chart")) location.reload();
  });
  // Fields that say nothing stay out of the address.
  document.addEventListener("submit", (event) => {
    if (event.target.method !== "get") return;
    for (const field of event.target.elements) if (!field.value && field.name) field.disabled = true;
  });
})();
