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
  document.addEventListener("DOMContentLoaded", () => {
    new MutationObserver(() => {
      for (const box of document.querySelectorAll("input[data-kept]")) {
        const said = marked.get(nameOf(box));
        if (said !== undefined && box.checked !== said) box.checked = said;
      }
      if (focused && document.activeElement === document.body) {
        document.getElementById(focused)?.focus({ preventScroll: true });
      }
    }).observe(document.body, { childList: true, subtree: true });
  });
  // Fields that say nothing stay out of the address.
  document.addEventListener("submit", (event) => {
    if (event.target.method !== "get") return;
    for (const field of event.target.elements) if (!field.value && field.name) field.disabled = true;
  });
})();
