"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const charts = new Map();
  const cents = { minimumFractionDigits: 2, maximumFractionDigits: 2 };
  const linked = ["equity", "candles", "rolling"];
  const SHEET = 1000; // pixels across a sheet of paper

  // Text: numbers as people read them, times in UTC.
  const number = (value) => {
    if (value === null || value === undefined || Number.isNaN(value)) return "-";
    const size = Math.abs(value);
    const digits = size >= 1000 || Number.isInteger(value) ? 0 : size >= 1 ? 2 : 4;
    return value.toLocaleString("en-GB", { maximumFractionDigits: digits });
  };
  const exact = (value) =>
    typeof value === "number" ? value.toLocaleString("en-GB", { maximumSignificantDigits: 6 }) : "-";
  const money = (value) =>
    value === null ? "-" : value.toLocaleString("en-GB", cents);
  const time = (ms) => new Date(ms).toISOString().slice(0, 16).replace("T", " ");

  // Looks: the page's own colours, so that charts and text change together.
  const { colour } = page;
  const theme = () => {
    const axis = {
      axisLine: { lineStyle: { color: colour("--faint") } },
      axisTick: { lineStyle: { color: colour("--faint") } },
      axisLabel: { color: colour("--ink") },
      nameTextStyle: { color: colour("--ink") },
      splitLine: { lineStyle: { color: colour("--line") } },
    };
    return {
      backgroundColor: "transparent",
      textStyle: { color: colour("--ink"), fontFamily: "system-ui, sans-serif" },
      legend: {
        textStyle: { color: colour("--ink") },
        pageTextStyle: { color: colour("--ink") },
        pageIconColor: colour("--focus"),
        pageIconInactiveColor: colour("--line"),
      },
      tooltip: {
        backgroundColor: colour("--card"),
        borderColor: colour("--faint"),
        textStyle: { color: colour("--ink") },
      },
      axisPointer: { label: { color: colour("--card"), backgroundColor: colour("--faint") } },
      timeAxis: axis,
      valueAxis: axis,
      logAxis: axis,
      categoryAxis: axis,
      dataZoom: {
        borderColor: colour("--line"),
        fillerColor: "rgba(0, 114, 178, .15)",
        textStyle: { color: colour("--ink") },
      },
    };
  };

  // Manners that an option of plain values cannot say.
  const dress = (id, option) => {
    for (const axis of [option.xAxis, option.yAxis].flat()) {
      if (axis.type === "value" || axis.type === "log") axis.axisLabel.formatter = number;
    }
    if (option.tooltip) option.tooltip.valueFormatter = exact;
    if (id === "monthly") {
      option.visualMap[0].inRange.color[1] = colour("--box");
      const narrow = byId(id).clientWidth < 560;
      for (const series of option.series) {
        series.itemStyle = { borderColor: colour("--card"), borderWidth: 2 };
        const { max } = option.visualMap[0];
        series.data = series.data.map((value) => ({
          value,
          label: { color: Math.abs(value[2]) > 0.55 * max ? "#ffffff" : colour("--ink") },
        }));
        series.label.fontSize = narrow ? 9 : 12;
        series.label.formatter = (cell) => cell.value[2].toFixed(narrow ? 0 : 1);
      }
      option.tooltip.formatter = (cell) => {
        const [month, year, value] = cell.value;
        const head = `${option.xAxis[0].data[month]} ${option.yAxis[0].data[year]}`;
        return `${head}: ${value.toFixed(2)} %`;
      };
    }
    if (id === "versus") {
      const wide = byId(id).clientWidth;
      option.grid[0].left = Math.min(190, Math.round(wide * 0.36));
      Object.assign(option.yAxis[0].axisLabel ??= {}, {
        width: option.grid[0].left - 14, overflow: "truncate",
      });
      option.tooltip.formatter = (point) => echarts.format.encodeHTML(
        `${point.seriesName}: ${exact(point.value[0])} ${option.xAxis[0].name}`);
    }
    for (const zoom of option.dataZoom || []) {
      // A finger on the chart scrolls the page; the slider zooms.
      if (zoom.type === "inside") zoom.disabled = matchMedia("(pointer: coarse)").matches;
      else zoom.labelFormatter = (value) => time(value).slice(0, 10);
    }
    if (byId(id).clientWidth < 560) {
      for (const grid of option.grid) if (grid.left === 62) grid.left = 46;
    }
    return option;
  };

  // On paper as lines: canvases that lie on each other wipe each other out there.
  const draw = (paper = false) => {
    const look = theme();
    for (const [id, option] of Object.entries(data.charts)) {
      const place = byId(id);
      const before = charts.get(id);
      const kept = before && (before.getOption().dataZoom || [])[0];
      if (before) before.dispose();
      const chart = echarts.init(place, look, paper ? { renderer: "svg", width: SHEET } : {});
      chart.setOption(dress(id, structuredClone(option)));
      if (paper) {
        chart.getZr().flush();
        const box = `0 0 ${SHEET} ${chart.getHeight()}`;
        place.querySelector("svg").setAttribute("viewBox", box);
      }
      charts.set(id, chart);
      if (linked.includes(id)) {
        chart.group = "time";
        if (kept) chart.dispatchAction({ type: "dataZoom", start: kept.start, end: kept.end });
      }
    }
    echarts.connect("time");
    if (charts.has("candles")) {
      charts.get("candles").on("datazoom", fit);
      fit();
    }
    if (byId("log")?.getAttribute("aria-pressed") === "true") scale();
  };

  // Candles: the finest level that does not crowd what is seen; marks only where they can be told.
  let level = 0;
  const window_ = (chart) => {
    const axis = chart.getOption().xAxis[0];
    const { start, end } = chart.getOption().dataZoom[0];
    const span = axis.max - axis.min;
    return [axis.min + (span * start) / 100, axis.min + (span * end) / 100];
  };
  const fit = () => {
    const chart = charts.get("candles");
    const [low, high] = window_(chart);
    const inside = (rows) => rows.filter((row) => row[0] >= low && row[0] <= high).length;
    const room = Math.max(150, chart.getWidth() / 2);
    level = 0;
    data.candles.forEach((each, place) => {
      if (inside(each.rows) <= room) level = place;
    });
    const marks = data.charts.candles.series.slice(1);
    const seen = marks.reduce((sum, series) => sum + inside(series.data), 0);
    const crowded = seen > data.most_marks;
    chart.setOption({
      series: [
        { data: data.candles[level].rows },
        ...marks.map((series) => ({
          data: crowded ? [] : series.data,
          symbolSize: seen > 8 + chart.getWidth() / 10 ? 7 : 11,
        })),
      ],
    });
    byId("candles-note").textContent =
      `${data.candles[level].period} candles; ` +
      (crowded
        ? `${number(seen)} trades here are too many to mark: zoom in.`
        : `${number(seen)} trades marked.`);
  };

  const scale = () => {
    const button = byId("log");
    if (!button) return;
    const log = button.getAttribute("aria-pressed") === "true";
    for (const [id, other] of Object.entries(data.log_axes)) {
      const axis = structuredClone(log ? other : data.charts[id].yAxis[0]);
      axis.axisLabel.formatter = number;
      charts.get(id).setOption({ yAxis: [axis] });
    }
  };

  // Keys: arrows move, + and - zoom, 0 shows everything.
  const steer = (event, chart) => {
    const { start, end } = chart.getOption().dataZoom[0];
    const width = end - start;
    const moves = {
      ArrowLeft: [-width / 10, -width / 10],
      ArrowRight: [width / 10, width / 10],
      "+": [width / 6, -width / 6],
      "=": [width / 6, -width / 6],
      "-": [-width / 4, width / 4],
      0: [-start, 100 - end],
    };
    const move = moves[event.key];
    if (!move || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    let [low, high] = [start + move[0], end + move[1]];
    if (event.key.startsWith("Arrow")) {
      const back = low < 0 ? -low : high > 100 ? 100 - high : 0;
      [low, high] = [low + back, high + back];
    }
    const zoom = { start: Math.max(0, low), end: Math.min(100, high) };
    chart.dispatchAction({ type: "dataZoom", dataZoomIndex: 0, ...zoom });
  };

  // Round trips: sorted by any column, a page at a time.
  const trips = { rows: data.trips, column: -1, down: false, page: 0, size: 20 };
  const cells = [
    (row, place) => number(place + 1),
    (row) => time(row[0]),
    (row) => time(row[1]),
    (row) => row[2],
    ...[3, 4, 5].map((at) => (row) => exact(row[at])),
    (row) => number(row[6]),
    ...[7, 8, 9, 10].map((at) => (row) => money(row[at])),
  ];
  const list = () => {
    const body = byId("trips");
    if (!body) return;
    const order = trips.rows.map((_, place) => place);
    if (trips.column > 0) {
      const at = trips.column - 1;
      const compare = (a, b) => (a === null ? -1 : b === null ? 1 : a < b ? -1 : a > b ? 1 : 0);
      order.sort((a, b) => compare(trips.rows[a][at], trips.rows[b][at]) || a - b);
    }
    if (trips.down) order.reverse();
    const pages = Math.max(1, Math.ceil(order.length / trips.size));
    trips.page = Math.min(Math.max(trips.page, 0), pages - 1);
    const first = trips.page * trips.size;
    body.replaceChildren(...order.slice(first, first + trips.size).map((place) => {
      const line = document.createElement("tr");
      cells.forEach((text, at) => {
        const cell = document.createElement("td");
        cell.textContent = text(trips.rows[place], place);
        if (at >= 10 && trips.rows[place][9] < 0) cell.className = "lost";
        line.append(cell);
      });
      return line;
    }));
    byId("page").textContent = `Page ${number(trips.page + 1)} of ${number(pages)}`;
    byId("back").disabled = trips.page === 0;
    byId("next").disabled = trips.page === pages - 1;
    document.querySelectorAll("#trip-heads th").forEach((head, at) => {
      const active = at === Math.max(trips.column, 0);
      head.setAttribute("aria-sort", !active ? "none" : trips.down ? "descending" : "ascending");
    });
  };

  // Explanations of figures, by pointer, finger or key.
  const tip = byId("tip");
  let told = null;
  const explain = (button) => {
    told = button;
    tip.textContent = button.dataset.tip;
    if (tip.showPopover && !tip.matches(":popover-open")) tip.showPopover();
    const at = button.getBoundingClientRect();
    const box = tip.getBoundingClientRect();
    const below = at.bottom + 6 + box.height < innerHeight;
    tip.style.left = `${Math.max(6, Math.min(at.left, innerWidth - box.width - 6))}px`;
    tip.style.top = `${below ? at.bottom + 6 : Math.max(6, at.top - box.height - 6)}px`;
  };
  const hush = () => {
    told = null;
    if (tip.hidePopover && tip.matches(":popover-open")) tip.hidePopover();
  };

  byId("log")?.addEventListener("click", (event) => {
    const button = event.currentTarget;
    button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
    scale();
  });
  byId("whole")?.addEventListener("click", () =>
    charts.get("equity").dispatchAction({ type: "dataZoom", start: 0, end: 100 }));
  for (const id of linked) {
    byId(id)?.addEventListener("keydown", (event) => steer(event, charts.get(id)));
  }
  byId("back")?.addEventListener("click", () => { trips.page -= 1; list(); });
  byId("next")?.addEventListener("click", () => { trips.page += 1; list(); });
  document.querySelectorAll("#trip-heads th").forEach((head, at) => {
    head.querySelector("button").addEventListener("click", () => {
      trips.down = trips.column === at ? !trips.down : at >= 6;
      trips.column = at;
      trips.page = 0;
      list();
    });
  });
  for (const button of document.querySelectorAll("button.tip")) {
    for (const kind of ["pointerenter", "focus", "click"]) {
      button.addEventListener(kind, () => explain(button));
    }
    for (const kind of ["pointerleave", "blur"]) button.addEventListener(kind, hush);
  }
  addEventListener("keydown", (event) => event.key === "Escape" && hush());
  addEventListener("scroll", () => told && explain(told), { passive: true, capture: true });
  let waiting = 0;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => charts.forEach((chart) => chart.resize()), 120);
  });
  list();
  draw();
  page.onTheme(draw);
})();
