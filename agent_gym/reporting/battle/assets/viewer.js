"use strict";
(() => {
  const battle = JSON.parse(document.getElementById("battle").textContent);
  const byId = (id) => document.getElementById(id);
  const { agents, ticks, perStep, perSecond, units } = battle;
  const steps = battle.actions.length;
  const [left, bottom, wide, high] = battle.box;
  const FLASH = 6, WORD = 14;
  const field = byId("field"), play = byId("play"), scrub = byId("scrub"), speed = byId("speed");
  let now = 0, playing = false, last = 0, chosen = -1;
  let shown = false, ended = false, paper = false; // whether the result is shown, and why

  let colours = {};
  const dress = () => {
    colours = {};
    for (const name of ["ink", "faint", "line", "card", "box", "focus", "good", "bad", "unsure", "c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"]) colours[name] = page.colour(`--${name}`);
  };
  const side = (u) => (u < agents ? colours.c0 : colours.c1);
  const tick = () => Math.min(Math.floor(now), ticks);
  const alive = (u, k) => battle.hp[k][u] > 0;
  const step = () => Math.min(Math.floor(tick() / perStep), steps - 1);
  const at = (u) => {
    const k = tick(), next = Math.min(k + 1, ticks), part = alive(u, next) ? now - k : 0;
    const x = battle.x[k][u] + part * (battle.x[next][u] - battle.x[k][u]);
    const y = battle.y[k][u] + part * (battle.y[next][u] - battle.y[k][u]);
    return [x, y];
  };

  // A canvas in pixels of the screen, drawn in those of the page.
  const prepared = (canvas, height) => {
    const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.height = `${height}px`;
    }
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    return [pen, width, height];
  };

  const draw = () => {
    const [pen, width, height] = prepared(field, Math.round(field.clientWidth * high / wide));
    const scale = width / wide;
    const place = (x, y) => [(x - left) * scale, height - (y - bottom) * scale];
    ground(pen, place);
    units.forEach((unit, u) => { if (!alive(u, tick())) grave(pen, place, u, scale); });
    if (chosen >= 0 && alive(chosen, tick())) reach(pen, place, chosen, scale);
    units.forEach((unit, u) => aim(pen, place, u, scale));
    shots(pen, place, scale);
    units.forEach((unit, u) => { if (alive(u, tick())) body(pen, place, u, scale); });
    units.forEach((unit, u) => { if (alive(u, tick())) bars(pen, place, u, scale); });
    words(pen, place, scale);
  };

  const ground = (pen, place) => {
    pen.lineWidth = 1;
    pen.strokeStyle = colours.line;
    pen.beginPath();
    for (let x = Math.ceil(left / 2) * 2; x < left + wide; x += 2) {
      pen.moveTo(...place(x, bottom));
      pen.lineTo(...place(x, bottom + high));
    }
    for (let y = Math.ceil(bottom / 2) * 2; y < bottom + high; y += 2) {
      pen.moveTo(...place(left, y));
      pen.lineTo(...place(left + wide, y));
    }
    pen.stroke();
    const [x0, y0] = place(0, 0), [x1, y1] = place(...battle.field);
    pen.strokeStyle = colours.faint;
    pen.lineWidth = 2;
    pen.strokeRect(x0, y1, x1 - x0, y0 - y1);
  };

  const grave = (pen, place, u, scale) => {
    const [x, y] = place(battle.x[battle.deaths[u]][u], battle.y[battle.deaths[u]][u]);
    const size = Math.max(units[u].radius * scale * 0.7, 5);
    const fresh = Math.max(0, 1 - (now - battle.deaths[u]) / WORD);
    pen.globalAlpha = 0.45 + 0.55 * fresh;
    pen.strokeStyle = side(u);
    pen.lineWidth = 2.5;
    pen.beginPath();
    pen.moveTo(x - size, y - size);
    pen.lineTo(x + size, y + size);
    pen.moveTo(x + size, y - size);
    pen.lineTo(x - size, y + size);
    pen.stroke();
    if (fresh > 0) {
      pen.globalAlpha = fresh * 0.7;
      pen.beginPath();
      pen.arc(x, y, size * (1.2 + 2 * (1 - fresh)), 0, 7);
      pen.stroke();
    }
    pen.globalAlpha = 1;
  };

  const reach = (pen, place, u, scale) => {
    const [x, y] = place(...at(u));
    pen.beginPath();
    pen.arc(x, y, (units[u].reach + units[u].radius) * scale, 0, 7);
    pen.globalAlpha = 0.1;
    pen.fillStyle = side(u);
    pen.fill();
    pen.globalAlpha = 0.5;
    pen.strokeStyle = side(u);
    pen.lineWidth = 1;
    pen.stroke();
    pen.globalAlpha = 1;
  };

  const aim = (pen, place, u) => {
    const k = tick(), target = battle.target[k][u];
    if (target < 0 || !alive(u, k) || !alive(target, k)) return;
    pen.globalAlpha = chosen < 0 ? 0.5 : u === chosen || target === chosen ? 0.9 : 0.15;
    pen.setLineDash([3, 4]);
    pen.lineWidth = u === chosen ? 2 : 1.2;
    pen.strokeStyle = side(u);
    pen.beginPath();
    pen.moveTo(...place(...at(u)));
    pen.lineTo(...place(...at(target)));
    pen.stroke();
    pen.setLineDash([]);
    pen.globalAlpha = 1;
  };

  const recent = (span) => battle.shots.filter(([k]) => k <= now && now - k < span);

  const shots = (pen, place) => {
    for (const [k, u, target] of recent(FLASH)) {
      pen.globalAlpha = 1 - (now - k) / FLASH;
      pen.strokeStyle = side(u);
      pen.lineWidth = 3;
      pen.beginPath();
      pen.moveTo(...place(...at(u)));
      pen.lineTo(...place(...at(target)));
      pen.stroke();
    }
    pen.globalAlpha = 1;
  };

  const body = (pen, place, u, scale) => {
    const [x, y] = place(...at(u)), size = Math.max(units[u].radius * scale, 8);
    pen.beginPath();
    if (units[u].building) pen.rect(x - size, y - size, 2 * size, 2 * size);
    else pen.arc(x, y, size, 0, 7);
    pen.fillStyle = u < agents ? side(u) : colours.card;
    pen.fill();
    pen.lineWidth = 2.5;
    pen.strokeStyle = side(u);
    pen.stroke();
    if (u === chosen) {
      pen.beginPath();
      pen.arc(x, y, size * (units[u].building ? 1.45 : 1) + 5, 0, 7);
      pen.strokeStyle = colours.ink;
      pen.lineWidth = 2;
      pen.stroke();
    }
    pen.fillStyle = u < agents ? colours.card : side(u);
    pen.font = `700 ${Math.max(11, Math.min(size * 1.1, 18))}px system-ui, sans-serif`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.fillText(units[u].label, x, y + 0.5);
  };

  const bars = (pen, place, u, scale) => {
    const k = tick(), share = battle.hp[k][u] / units[u].hp, size = Math.max(units[u].radius * scale, 8);
    const width = Math.max(2 * size + 6, 26), [x, middle] = place(...at(u));
    const y = middle - size - (u === chosen ? 9 : 5);
    const line = (top, tall, part, colour) => {
      pen.fillStyle = colours.faint;
      pen.globalAlpha = 0.4;
      pen.fillRect(x - width / 2, top, width, tall);
      pen.globalAlpha = 1;
      pen.fillStyle = colour;
      pen.fillRect(x - width / 2, top, width * part, tall);
    };
    line(y - 5, 5, share, colours[tone(share)]);
    if (units[u].shield) line(y - 9, 3, battle.shield[k][u] / units[u].shield, colours.c5);
  };

  const tone = (share) => (share > 0.6 ? "good" : share > 0.3 ? "unsure" : "bad");

  const words = (pen, place, scale) => {
    pen.font = "700 13px system-ui, sans-serif";
    pen.textAlign = "center";
    // One word a target: what it lost a moment ago, so that words never overlap.
    units.forEach((unit, target) => {
      const hits = recent(WORD).filter((shot) => shot[2] === target);
      if (!hits.length) return;
      const age = (now - hits.at(-1)[0]) / WORD, lost = hits.reduce((sum, shot) => sum + shot[3], 0);
      const [x, y] = place(...at(target)), size = Math.max(unit.radius * scale, 8);
      pen.globalAlpha = 1 - age;
      pen.fillStyle = colours.ink;
      pen.fillText(`−${Math.round(lost * 10) / 10}`, x + size + 18, y - 4 - 12 * age);
    });
    pen.globalAlpha = 1;
  };

  // The list of units.
  const rows = units.map((unit, u) => {
    const row = document.createElement("button");
    row.type = "button";
    row.className = `unit ${u < agents ? "ours" : "theirs"}`;
    row.setAttribute("aria-pressed", "false");
    const part = (kind, parent, tag = "div") => {
      const made = document.createElement(tag);
      made.className = kind;
      parent.append(made);
      return made;
    };
    const line = part("line", row), name = part("", line, "span"), points = part("", line, "span");
    name.textContent = `${unit.name} · ${unit.kind}`;
    const shield = unit.shield ? part("", part("bar shield", row), "i") : null;
    const hp = part("", part("bar", row), "i"), does = part("does", row);
    row.addEventListener("click", () => choose(chosen === u ? -1 : u));
    byId("units").append(row);
    return { row, points, hp, shield, does };
  });

  const order = (u) => {
    const k = tick(), target = battle.target[k][u];
    if (!alive(u, k)) return `dead since step ${Math.ceil(battle.deaths[u] / perStep)}`;
    if (u < agents) return battle.actionNames[battle.actions[step()][u]].replace("attack ", "attack enemy ");
    return target < 0 ? "marches" : `fights ${units[target].name}`;
  };

  const list = () => {
    const k = tick();
    rows.forEach(({ row, points, hp, shield, does }, u) => {
      const share = battle.hp[k][u] / units[u].hp;
      hp.style.width = `${100 * share}%`;
      hp.className = { good: "", unsure: "half", bad: "low" }[tone(share)];
      if (shield) shield.style.width = `${(100 * battle.shield[k][u]) / units[u].shield}%`;
      const extra = shield ? ` + ${Math.round(battle.shield[k][u])}` : "";
      points.textContent = `${Math.round(battle.hp[k][u])}${extra}`;
      does.textContent = order(u);
      row.classList.toggle("dead", !alive(u, k));
      row.setAttribute("aria-pressed", String(u === chosen));
    });
  };

  // Charts: rows of numbers by tick or by step, a line each.
  const shareOf = (first, end) => battle.hp.map((row, k) => {
    let have = 0, whole = 0;
    for (let u = first; u < end; u += 1) {
      have += row[u] + battle.shield[k][u];
      whole += units[u].hp + units[u].shield;
    }
    return (100 * have) / whole;
  });
  const lines = (name) => {
    if (name === "points") {
      return { perStep: 1, names: ["agents", "enemies"], each: [shareOf(0, agents), shareOf(agents, units.length)], digits: 0, side: true };
    }
    const table = battle.signals[name], n = table[0].length;
    const each = Array.from({ length: n }, (_, i) => table.map((row, t) => (n > 1 && !alive(i, t * perStep) ? null : row[i])));
    return { perStep, names: n > 1 ? units.slice(0, n).map((unit) => unit.name) : ["team"], each, digits: 2, side: false };
  };
  const charts = [...document.querySelectorAll("canvas[data-chart]")].map((canvas) => {
    const made = { canvas, told: canvas.parentElement.querySelector("output"), ...lines(canvas.dataset.chart) };
    const known = made.each.flat().filter((value) => value !== null);
    made.readings = made.names.map((name) => {
      const reading = document.createElement("span");
      reading.title = name;
      made.told.append(reading);
      return reading;
    });
    made.low = Math.min(0, ...known);
    made.top = Math.max(made.low + 1e-9, ...known);
    canvas.addEventListener("click", (event) => {
      const { left: from, width } = canvas.getBoundingClientRect();
      go(((event.clientX - from - 34) / (width - 40)) * ticks);
    });
    return made;
  });

  const hue = (chart, i) => (chart.side ? [colours.c0, colours.c1][i] : colours[["c0", "c2", "c3", "c4", "c6", "c7", "c5", "c1"][i % 8]]);

  const drawChart = (chart) => {
    const [pen, width, height] = prepared(chart.canvas, 110);
    const x = (k) => 34 + (k / ticks) * (width - 40);
    const y = (value) => height - 8 - ((value - chart.low) / (chart.top - chart.low)) * (height - 18);
    pen.font = "11px system-ui, sans-serif";
    pen.fillStyle = colours.faint;
    pen.strokeStyle = colours.line;
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    pen.lineWidth = 1;
    for (const value of [chart.low, chart.top]) {
      pen.fillText(value === 0 || Math.abs(value) >= 10 ? value.toFixed(0) : value.toFixed(chart.digits), 30, y(value));
      pen.beginPath();
      pen.moveTo(34, y(value));
      pen.lineTo(width - 6, y(value));
      pen.stroke();
    }
    if (now === 0 && !told()) {
      pen.textAlign = "center";
      pen.fillText("drawn as the battle goes on", x(ticks / 2), height / 2);
    }
    pen.save();
    pen.beginPath();
    pen.rect(0, 0, x(told() ? ticks : now) + 1, height); // what is to come is part of the result
    pen.clip();
    chart.each.forEach((row, i) => {
      const marked = !chart.side && chart.each.length > 1 && chosen === i;
      pen.globalAlpha = !chart.side && chosen >= 0 && chosen < chart.each.length && !marked ? 0.3 : 1;
      pen.strokeStyle = hue(chart, i);
      pen.lineWidth = marked ? 3 : 1.8;
      pen.beginPath();
      let down = false;
      row.forEach((value, t) => {
        if (value === null) { down = false; return; }
        const from = x(t * chart.perStep), to = x(Math.min((t + 1) * chart.perStep, ticks));
        if (down) pen.lineTo(from, y(value));
        else pen.moveTo(from, y(value));
        if (chart.perStep > 1) pen.lineTo(to, y(value));
        down = true;
      });
      pen.stroke();
    });
    pen.restore();
    pen.strokeStyle = colours.ink;
    pen.lineWidth = 1.5;
    pen.beginPath();
    pen.moveTo(x(now), 4);
    pen.lineTo(x(now), height - 4);
    pen.stroke();
    const here = Math.min(Math.floor(now / chart.perStep), chart.each[0].length - 1);
    chart.each.forEach((row, i) => {
      const value = row[here] === null ? "dead" : row[here].toFixed(chart.digits);
      chart.readings[i].textContent = `${chart.side ? `${chart.names[i]} ` : chart.each.length > 1 ? `${i}: ` : ""}${value}`;
      chart.readings[i].style.color = hue(chart, i);
    });
  };

  const summary = () => {
    const k = tick(), living = (first, end) => battle.hp[k].slice(first, end).filter((hp) => hp > 0).length;
    return `Step ${Math.min(Math.ceil(k / perStep), steps)} of ${steps}: ${living(0, agents)} of ${agents} agents and `
      + `${living(agents, units.length)} of ${units.length - agents} enemies alive.`;
  };

  // The banner: how it ended, once the last step was seen, or when asked for.
  const verdict = byId("verdict"), reveal = byId("reveal"), root = document.documentElement;
  const parts = { sign: verdict.querySelector(".sign"), word: verdict.querySelector(".word"), headline: verdict.querySelector("h1"), why: verdict.querySelector("h1 + p") };
  const open = { light: "same", sign: "?", word: parts.word.textContent, headline: parts.headline.textContent, why: "The result is shown after the last step." };
  const about = parts.why.textContent;
  verdict.setAttribute("aria-live", "polite");
  const told = () => shown || paper;
  const banner = () => {
    if (now >= ticks && !ended) shown = true;
    ended = now >= ticks;
    const state = told() ? battle.result : open;
    if (root.dataset.light === state.light && parts.sign.textContent === state.sign) return;
    verdict.className = `banner ${state.light}`;
    root.dataset.light = state.light;
    for (const name of ["sign", "word", "headline"]) parts[name].textContent = state[name];
    parts.why.textContent = `${about} ${state.why}`;
    reveal.textContent = told() ? "Hide the result" : "Show the result";
    reveal.setAttribute("aria-pressed", String(told()));
  };

  const show = () => {
    banner();
    draw();
    list();
    charts.forEach(drawChart);
    const k = tick();
    scrub.value = String(k);
    scrub.setAttribute("aria-valuetext", `step ${Math.floor(k / perStep)} of ${steps}`);
    byId("clock").textContent = `step ${Math.min(Math.ceil(k / perStep), steps)} / ${steps} · ${(k / perSecond).toFixed(1)} s · return ${k ? battle.rewards[Math.min(Math.ceil(k / perStep), steps) - 1].toFixed(1) : "0.0"}`;
    field.dataset.tick = now.toFixed(2);
    field.dataset.playing = playing ? "yes" : "no";
    if (!playing) field.setAttribute("aria-label", summary());
  };

  const go = (to) => { now = Math.max(0, Math.min(ticks, to)); show(); };
  const choose = (u) => { chosen = u; show(); };
  const set = (wanted) => {
    playing = wanted;
    play.textContent = playing ? "❚❚ Pause" : "▶ Play";
    play.setAttribute("aria-label", playing ? "Pause" : "Play");
    if (playing) {
      if (now >= ticks) now = 0;
      last = performance.now();
      requestAnimationFrame(frame);
    }
    show();
  };
  const frame = (time) => {
    if (!playing) return;
    now = Math.min(ticks, now + (Math.max(0, time - last) / 1000) * perSecond * Number(speed.value));
    last = time;
    if (now >= ticks) set(false);
    else { show(); requestAnimationFrame(frame); }
  };
  const hop = (by) => { set(false); go((by > 0 ? Math.floor(tick() / perStep) + by : Math.ceil(now / perStep) + by) * perStep); };
  const faster = (by) => {
    speed.selectedIndex = Math.max(0, Math.min(speed.options.length - 1, speed.selectedIndex + by));
  };

  scrub.max = String(ticks);
  play.addEventListener("click", () => set(!playing));
  const turn = () => { shown = !shown; show(); };
  reveal.addEventListener("click", turn);
  byId("first").addEventListener("click", () => { set(false); go(0); });
  byId("back").addEventListener("click", () => hop(-1));
  byId("next").addEventListener("click", () => hop(1));
  scrub.addEventListener("input", () => {
    const wanted = Number(scrub.value); // showing moves the handle back
    set(false);
    go(wanted);
  });
  field.addEventListener("click", (event) => {
    const box = field.getBoundingClientRect(), scale = box.width / wide;
    const x = left + (event.clientX - box.left) / scale, y = bottom + (box.bottom - event.clientY) / scale;
    let best = -1, near = 1.2;
    units.forEach((unit, u) => {
      const [ux, uy] = at(u), far = Math.hypot(ux - x, uy - y) - unit.radius;
      if (alive(u, tick()) && far < near) [best, near] = [u, far];
    });
    choose(best === chosen ? -1 : best);
  });
  const keys = {
    " ": () => set(!playing), ArrowRight: () => hop(1), ArrowLeft: () => hop(-1),
    ".": () => { set(false); go(tick() + 1); }, ",": () => { set(false); go(Math.ceil(now) - 1); },
    Home: () => go(0), End: () => { set(false); go(ticks); }, "+": () => faster(1), "-": () => faster(-1),
    Escape: () => choose(-1), r: turn,
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("select")) return;
    // A button that has the focus keeps its own space.
    if (event.key === " " && event.target.closest?.("button, summary")) return;
    const agent = /^[1-9]$/.test(event.key) ? Number(event.key) - 1 : -1;
    if (agent >= 0 && agent < agents) choose(agent);
    else if (keys[event.key]) keys[event.key]();
    else return;
    event.preventDefault();
  });
  page.onTheme((printed) => { paper = printed; dress(); show(); });
  new ResizeObserver(() => show()).observe(field.parentElement);
  dress();
  show();
})();
