"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const size = (bytes) => {
    const units = ["B", "KB", "MB", "GB"];
    let at = 0;
    let value = Math.abs(bytes);
    while (value >= 1024 && at < 3) {
      value /= 1024;
      at += 1;
    }
    const digits = at === 0 ? 0 : value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    return `${bytes < 0 ? "-" : ""}${value.toFixed(digits)} ${units[at]}`;
  };
  const time = (s) => {
    if (s < 10) return `${s.toFixed(1)} s`;
    const whole = Math.round(s);
    if (whole < 60) return `${whole} s`;
    if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
    if (whole < 86400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
    return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
  };

  /* As above, to the second where only hours are shown. */
  const exact = (s, shown) => {
    if (s < 3600 || shown > 14400) return time(s);
    const [days, hours] = [Math.floor(s / 86400), Math.floor((s % 86400) / 3600)];
    const rest = [Math.floor((s % 3600) / 60), Math.floor(s % 60)].map((part) => String(part).padStart(2, "0"));
    return `${days > 0 ? `${days} d ` : ""}${hours}:${rest.join(":")}`;
  };

  /* Charts: a marker that follows the pointer and the arrow keys, and zooming with the finer level of detail. */
  const WIDTH = 3600;
  const NONE = 65535;
  const decode = (text) => {
    const raw = atob(text);
    const values = new Uint16Array(raw.length / 2);
    for (let i = 0; i < values.length; i += 1)
      values[i] = raw.charCodeAt(2 * i) | (raw.charCodeAt(2 * i + 1) << 8);
    return values;
  };
  const chart = (root) => {
    const end = Number(root.dataset.end);
    const most = Number(root.dataset.most);
    const canvas = root.querySelector(".canvas");
    const cursor = root.querySelector(".cursor");
    const readout = root.querySelector(".readout");
    const axis = all(".x-axis", root);
    const curves = all("[data-curve]", root).map((path) => ({ path, text: path.dataset.fine, values: null }));
    const names = all(`[data-chart="${root.id}"]`).map((button) => button.textContent.trim());
    let from = 0;
    let to = 1;
    let at = null;
    const fine = (curve) => (curve.values ??= decode(curve.text));
    const drawAxis = () => {
      const width = to - from;
      for (const mark of axis.flatMap((one) => all("text", one))) {
        mark.dataset.at ??= String(parseFloat(mark.getAttribute("x")) / 100);
        const x = (Number(mark.dataset.at) - from) / width;
        mark.setAttribute("x", `${100 * x}%`);
        mark.style.display = x < -0.001 || x > 1.001 ? "none" : "";
      }
      let extra = root.querySelector(".zoom-marks");
      extra?.remove();
      if (width > 0.5) return;
      /* Between the marks of the whole run there is nothing left: the ends of what is shown. */
      extra = document.createElementNS(axis[0].namespaceURI, "g");
      extra.setAttribute("class", "zoom-marks");
      for (const mark of all("text", axis[0])) mark.style.display = "none";
      for (const part of [0, 0.25, 0.5, 0.75, 1]) {
        const text = document.createElementNS(axis[0].namespaceURI, "text");
        text.setAttribute("x", `${100 * part}%`);
        text.setAttribute("y", "14");
        text.textContent = exact((from + part * width) * end, width * end);
        extra.append(text);
      }
      axis[0].append(extra);
    };
    const draw = () => {
      const width = to - from;
      for (const view of all(".zoomed", root))
        view.setAttribute("viewBox", `${from * WIDTH} 0 ${width * WIDTH} 1000`);
      for (const curve of curves) {
        curve.coarse ??= curve.path.getAttribute("d");
        if (width === 1) {
          curve.path.setAttribute("d", curve.coarse);
          continue;
        }
        const values = fine(curve);
        const count = values.length / 2;
        const first = Math.max(0, Math.floor(from * count) - 2);
        const last = Math.min(count, Math.ceil(to * count) + 2);
        let path = "";
        for (let i = first; i < last; i += 1) {
          const [low, high] = [values[2 * i], values[2 * i + 1]];
          if (high === NONE) continue;
          const y = (value) => Math.round(1000 - (1000 * value) / (NONE - 1));
          path += `${path === "" ? "M" : "L"}${(((i + 0.5) / count) * WIDTH).toFixed(1)} ${y(low)}`;
          if (high !== low) path += `V${y(high)}`;
        }
        curve.path.setAttribute("d", path);
      }
      drawAxis();
      mark();
    };
    const mark = () => {
      if (at === null) {
        cursor.style.display = "none";
        return;
      }
      const x = (at - from) / (to - from);
      cursor.style.display = x < 0 || x > 1 ? "none" : "block";
      cursor.setAttribute("x1", `${100 * x}%`);
      cursor.setAttribute("x2", `${100 * x}%`);
      const parts = curves.map((curve, index) => {
        if (curve.path.classList.contains("off")) return null;
        const values = fine(curve);
        const span = Math.min(values.length / 2 - 1, Math.floor((at * values.length) / 2));
        const high = values[2 * span + 1];
        return high === NONE ? null : `${names[index]} ${size((high / (NONE - 1)) * most)}`;
      });
      readout.textContent = [exact(at * end, (to - from) * end), ...parts.filter(Boolean).slice(0, 6)].join(" · ");
    };
    const zoom = (factor, centre) => {
      const width = Math.min(1, Math.max((to - from) * factor, 0.002));
      const part = (centre - from) / (to - from);
      from = Math.min(Math.max(0, centre - part * width), 1 - width);
      to = from + width;
      draw();
    };
    const middle = () => at ?? (from + to) / 2;
    const actions = {
      in: () => zoom(0.5, middle()),
      out: () => zoom(2, middle()),
      whole: () => {
        [from, to] = [0, 1];
        draw();
      },
    };
    for (const button of all("[data-zoom]", root))
      button.addEventListener("click", () => actions[button.dataset.zoom]());
    const place = (event) => {
      const box = canvas.getBoundingClientRect();
      return from + Math.min(1, Math.max(0, (event.clientX - box.left) / box.width)) * (to - from);
    };
    let dragged = null;
    canvas.addEventListener("pointermove", (event) => {
      at = place(event);
      mark();
    });
    canvas.addEventListener("pointerleave", () => {
      at = null;
      mark();
      readout.textContent = "";
    });
    canvas.addEventListener("pointerdown", (event) => (dragged = place(event)));
    canvas.addEventListener("pointerup", (event) => {
      const [low, high] = [dragged ?? 0, place(event)].sort((a, b) => a - b);
      if (dragged !== null && high - low > 0.01 * (to - from)) {
        [from, to] = [low, high];
        draw();
      }
      dragged = null;
    });
    canvas.addEventListener("keydown", (event) => {
      const step = (to - from) / 100;
      const keys = {
        ArrowLeft: () => (at = Math.max(0, middle() - step)),
        ArrowRight: () => (at = Math.min(1, middle() + step)),
        Home: () => (at = from),
        End: () => (at = to),
        "+": actions.in,
        "=": actions.in,
        "-": actions.out,
        Escape: actions.whole,
      };
      if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
      if (at !== null && (at < from || at > to)) {
        const width = to - from;
        from = Math.min(Math.max(0, at - width / 2), 1 - width);
        to = from + width;
        draw();
      }
      mark();
    });
    for (const button of all(`[data-chart="${root.id}"]`))
      button.addEventListener("click", () => {
        const off = button.getAttribute("aria-pressed") === "true";
        button.setAttribute("aria-pressed", String(!off));
        curves[Number(button.dataset.toggle)].path.classList.toggle("off", off);
        mark();
      });
  };
  all(".chart[data-end]").forEach(chart);

  /* On paper everything is open. */
  addEventListener("beforeprint", () => all("details").forEach((details) => (details.open = true)));

  /* Tables. */
  const key = (row, column) => {
    const cell = row.cells[column];
    const value = cell?.dataset.value;
    return value === undefined ? (cell?.textContent.trim().toLowerCase() ?? "") : Number(value);
  };
  for (const table of all("table.sortable"))
    all("thead th", table).forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const numbers = head.classList.contains("number");
        const now = head.getAttribute("aria-sort");
        const down = now === null ? numbers : now === "ascending";
        all("th", head.parentElement).forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const body = table.tBodies[0];
        const rows = [...body.rows].map((row) => [key(row, column), row]);
        rows.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0) * (down ? -1 : 1));
        body.append(...rows.map(([, row]) => row));
      });
    });
  for (const input of all("input[data-search]"))
    input.addEventListener("input", () => {
      const section = document.getElementById(input.dataset.search);
      const wanted = input.value.trim().toLowerCase();
      let count = 0;
      for (const row of all("tbody tr", section)) {
        row.hidden = !row.textContent.toLowerCase().includes(wanted);
        count += row.hidden ? 0 : 1;
      }
      section.querySelector(".search output").textContent = wanted === "" ? "" : `${count} rows`;
    });

  /* The flame graph. */
  const ROW = 22;
  const picture = document.querySelector("svg.flame");
  if (!picture) return;
  const tool = (name) => document.querySelector(`[data-flame="${name}"]`);
  const frames = all(".frame", picture).map((element) => ({
    element,
    live: Number(element.dataset.live),
    growth: Number(element.dataset.growth),
    parent: element.dataset.parent === undefined ? null : Number(element.dataset.parent),
    text: element.getAttribute("aria-label"),
    hidden: element.classList.contains("hidden"),
    first: element.classList.contains("hidden"),
    children: [],
    depth: 0,
  }));
  for (const frame of frames) {
    if (frame.parent === null) continue;
    frame.parent = frames[frame.parent];
    frame.parent.children.push(frame);
    frame.depth = frame.parent.depth + 1;
  }
  const [root] = frames;
  let measure = "live";
  let focus = root;
  let rows = 1;
  const put = (frame, left, width) => {
    const shown = width > 0;
    frame.element.classList.toggle("hidden", !shown);
    if (!shown) return;
    frame.element.classList.toggle("closed", frame.children.some((child) => child.hidden));
    frame.element.setAttribute("x", `${left}%`);
    frame.element.setAttribute("width", `${width}%`);
    rows = Math.max(rows, frame.depth + 1);
  };
  const drawFrame = (frame, left, width) => {
    put(frame, left, width);
    for (const child of frame.children) {
      const share = frame[measure] > 0 ? (width * child[measure]) / frame[measure] : 0;
      drawFrame(child, left, child.hidden ? 0 : share);
      left += share;
    }
  };
  const search = () => {
    const wanted = tool("search").value.trim().toLowerCase();
    let bytes = 0;
    /* What a frame holds counts once, however often the word occurs on its stack. */
    const visit = (frame, counted) => {
      const hit = wanted !== "" && frame !== root && frame.text.toLowerCase().includes(wanted);
      frame.element.classList.toggle("hit", hit);
      if (hit && !counted) bytes += frame[measure];
      for (const child of frame.children) visit(child, counted || hit);
    };
    visit(root, false);
    const share = root[measure] > 0 ? (100 * bytes) / root[measure] : 0;
    tool("found").textContent = wanted === "" ? "" : `${share.toFixed(1)} % of what is drawn`;
  };
  const show = () => {
    const callers = new Set();
    for (let frame = focus.parent; frame; frame = frame.parent) callers.add(frame);
    rows = 1;
    for (const frame of frames) {
      frame.element.classList.toggle("outside", callers.has(frame));
      put(frame, 0, callers.has(frame) ? 100 : 0);
    }
    drawFrame(focus, 0, focus[measure] > 0 ? 100 : 0);
    picture.setAttribute("height", String(rows * ROW));
    tool("whole").disabled = focus === root;
    tool("detail").textContent = root[measure] > 0 ? focus.text : "No stack was seen to grow beyond doubt.";
    for (const button of all("[data-measure]"))
      button.setAttribute("aria-pressed", String(button.dataset.measure === measure));
    search();
  };
  const goTo = (frame) => {
    focus = frame;
    show();
  };
  const choose = (frame) => {
    for (const child of frame.children) child.hidden = false;
    goTo(frame);
  };
  const visible = (frame) => frame && !frame.element.classList.contains("hidden");
  const step = (frame, by) => {
    const row = frames.filter((other) => visible(other) && other.depth === frame.depth);
    return row[row.indexOf(frame) + by];
  };
  for (const frame of frames) {
    frame.element.addEventListener("click", () => choose(frame));
    for (const kind of ["mouseenter", "focus"])
      frame.element.addEventListener(kind, () => (tool("detail").textContent = frame.text));
    frame.element.addEventListener("keydown", (event) => {
      const next = {
        ArrowUp: () => frame.parent,
        ArrowDown: () => frame.children.find(visible),
        ArrowLeft: () => step(frame, -1),
        ArrowRight: () => step(frame, 1),
      }[event.key];
      if (event.key === "Enter" || event.key === " ") choose(frame);
      else if (event.key === "Escape") goTo(root);
      else if (!next) return;
      event.preventDefault();
      const to = next?.();
      if (!visible(to)) return;
      frame.element.setAttribute("tabindex", "-1");
      to.element.setAttribute("tabindex", "0");
      to.element.focus();
    });
  }
  for (const button of all("[data-measure]"))
    button.addEventListener("click", () => {
      measure = button.dataset.measure;
      goTo(root);
    });
  tool("whole").addEventListener("click", () => goTo(root));
  tool("search").addEventListener("input", search);
  tool("libraries").addEventListener("click", (event) => {
    const open = event.currentTarget.getAttribute("aria-pressed") !== "true";
    event.currentTarget.setAttribute("aria-pressed", String(open));
    for (const frame of frames) frame.hidden = open ? false : frame.first;
    show();
  });
})();
