"use strict";
const frames = [...document.querySelectorAll(".frame")].map((element) => ({
  element,
  live: Number(element.dataset.live),
  growth: Number(element.dataset.growth),
  parent: element.dataset.parent === undefined ? null : Number(element.dataset.parent),
  text: element.querySelector("title").textContent,
  children: [],
}));
for (const frame of frames) {
  if (frame.parent !== null) {
    frame.parent = frames[frame.parent];
    frame.parent.children.push(frame);
  }
}
const [root] = frames;
const byId = (id) => document.getElementById(id);
let measure = "live";
let focus = root;

function place(frame, left, width) {
  frame.element.style.display = width > 0 ? "" : "none";
  frame.element.setAttribute("x", `${left}%`);
  frame.element.setAttribute("width", `${width}%`);
}

/* A frame with what it called, within these bounds in percent. */
function draw(frame, left, width) {
  place(frame, left, width);
  for (const child of frame.children) {
    const share = frame[measure] > 0 ? (width * child[measure]) / frame[measure] : 0;
    draw(child, left, share);
    left += share;
  }
}

function show() {
  const callers = new Set();
  for (let frame = focus.parent; frame; frame = frame.parent) callers.add(frame);
  for (const frame of frames) {
    frame.element.classList.toggle("outside", callers.has(frame));
    place(frame, 0, callers.has(frame) ? 100 : 0);
  }
  draw(focus, 0, focus[measure] > 0 ? 100 : 0);
  byId("whole").disabled = focus === root;
  for (const name of ["live", "growth"]) byId(name).setAttribute("aria-pressed", String(name === measure));
  byId("detail").textContent =
    root[measure] > 0 ? focus.text : "No stack was seen to grow beyond doubt.";
  find();
}

function find() {
  const wanted = byId("search").value.trim().toLowerCase();
  let bytes = 0;
  /* What a frame holds counts once, however often the word occurs on its stack. */
  const mark = (frame, counted) => {
    const hit = wanted !== "" && frame !== root && frame.text.toLowerCase().includes(wanted);
    frame.element.classList.toggle("hit", hit);
    if (hit && !counted) bytes += frame[measure];
    for (const child of frame.children) mark(child, counted || hit);
  };
  if (root) mark(root, false);
  const share = root && root[measure] > 0 ? (100 * bytes) / root[measure] : 0;
  byId("found").textContent = wanted === "" ? "" : `${share.toFixed(1)} % of what is drawn`;
}

function goTo(frame) {
  focus = frame;
  show();
}

for (const frame of frames) {
  frame.element.addEventListener("click", () => goTo(frame));
  frame.element.addEventListener("keydown", (event) => event.key === "Enter" && goTo(frame));
  for (const kind of ["mouseenter", "focus"])
    frame.element.addEventListener(kind, () => (byId("detail").textContent = frame.text));
}
for (const name of ["live", "growth"])
  byId(name).addEventListener("click", () => {
    measure = name;
    goTo(root);
  });
byId("whole").addEventListener("click", () => goTo(root));
byId("search").addEventListener("input", find);
document.addEventListener("keydown", (event) => event.key === "Escape" && goTo(root));
