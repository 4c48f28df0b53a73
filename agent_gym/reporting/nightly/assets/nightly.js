"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const table = byId("metrics");
  const bodies = table ? [...table.tBodies] : [];
  const search = byId("search");
  const scenario = byId("scenario");
  const views = [...document.querySelectorAll(".views button")];
  const heads = table ? [...table.querySelectorAll("thead button")] : [];
  const state = { view: "all", q: "", scenario: "", sort: "" };

  // Which rows are shown
  const text = new Map(bodies.map((body) => [body, body.dataset.name.toLowerCase()]));
  const own = new Map(bodies.map((body) => [body, body.querySelector(".of").textContent]));
  const fits = (body) => {
    if (state.view === "changed" && body.dataset.changed !== "1") return false;
    if (state.view === "unsure" && body.dataset.kind !== "unsure") return false;
    if (state.scenario && own.get(body) !== state.scenario) return false;
    return state.q.toLowerCase().split(/\s+/).every((word) => text.get(body).includes(word));
  };
  const show = () => {
    let seen = 0;
    for (const body of bodies) { body.hidden = !fits(body); seen += body.hidden ? 0 : 1; }
    for (const button of views) button.setAttribute("aria-pressed", String(button.dataset.view === state.view));
    byId("shown").textContent = `${seen} of ${bodies.length}`;
    byId("none").hidden = seen > 0;
  };

  // In which order: numbers by size, names by letters, what has no value last
  const sort = () => {
    const [key, way] = state.sort.split(":");
    for (const head of heads) {
      const mine = head.dataset.sort === key;
      if (mine) head.parentElement.setAttribute("aria-sort", way === "down" ? "descending" : "ascending");
      else head.parentElement.removeAttribute("aria-sort");
    }
    const by = key || "rank";
    const sign = way === "down" ? -1 : 1;
    const order = [...bodies].sort((a, b) => {
      const [x, y] = [a.dataset[by], b.dataset[by]];
      if (x === undefined || y === undefined) return (x === undefined) - (y === undefined);
      if (by === "name") return sign * (x < y ? -1 : x > y ? 1 : 0);
      return sign * (Number(x) - Number(y)) || Number(a.dataset.rank) - Number(b.dataset.rank);
    });
    table.append(...order);
  };

  // The address holds the view, so that it can be sent to someone
  const keep = () => {
    const words = new URLSearchParams(Object.entries(state).filter(([key, value]) => value && !(key === "view" && value === "all")));
    history.replaceState(null, "", `#${words}`);
  };
  const read = () => {
    const words = new URLSearchParams(location.hash.slice(1));
    for (const key of Object.keys(state)) if (words.has(key)) state[key] = words.get(key);
    if (!views.some((button) => button.dataset.view === state.view)) state.view = "all";
    if (!heads.some((head) => head.dataset.sort === state.sort.split(":")[0])) state.sort = "";
  };
  const update = () => { show(); keep(); };

  const open = (body, wanted) => {
    const button = body.querySelector(".more");
    const detail = body.querySelector(".detail");
    detail.hidden = wanted === undefined ? !detail.hidden : !wanted;
    button.setAttribute("aria-expanded", String(!detail.hidden));
  };
  const reset = () => { Object.assign(state, { view: "all", q: "", scenario: "" }); fill(); show(); };
  const fill = () => { search.value = state.q; scenario.value = state.scenario; };
  const go = () => {
    const body = bodies.find((each) => `#${each.id}` === location.hash);
    if (!body) return;
    if (body.hidden) reset();
    open(body, true);
    body.scrollIntoView({ block: "center" });
  };

  if (table) {
    read();
    fill();
    if (state.sort) sort();
    show();
    for (const button of views) button.addEventListener("click", () => { state.view = button.dataset.view; update(); });
    search.addEventListener("input", () => { state.q = search.value; update(); });
    scenario.addEventListener("change", () => { state.scenario = scenario.value; update(); });
    byId("reset").addEventListener("click", () => { reset(); keep(); });
    for (const head of heads) head.addEventListener("click", () => {
      const key = head.dataset.sort;
      const first = ["name", "rank", "p"].includes(key) ? "up" : "down";
      const second = first === "up" ? "down" : "up";
      state.sort = state.sort === `${key}:${first}` ? `${key}:${second}` : `${key}:${first}`;
      sort();
      keep();
    });
    for (const body of bodies) body.querySelector(".more").addEventListener("click", () => open(body));
    addEventListener("hashchange", go);
    go();
  }
})();
