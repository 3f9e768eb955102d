// Rows side by side by keys: j k and [ ] go from row to row, digits, t and 0 judge, u takes back, d and b switch.
"use strict";

const JUDGES = { t: "tie", 0: "all_bad", u: "none" };
let judging = "";

function showRow() {
  const rows = document.querySelector(".viewer .rows");
  const row = rows?.querySelector("[aria-current]");
  if (row) rows.scrollTop = row.offsetTop - rows.offsetTop - rows.clientHeight / 3;
}

document.addEventListener("keydown", (event) => {
  const { key, target } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || target.matches("input:not([type=checkbox]), select, textarea")) return;
  const next = { j: "next", k: "prev" }[key];
  if (next) return document.querySelector(`.steps [rel=${next}]`)?.click();
  if (key === "d" || key === "b") return document.getElementById(key === "d" ? "diff" : "blind")?.click();
  const value = JUDGES[key] ?? key;
  const button = document.querySelector(`.prefer button[value="${CSS.escape(value)}"]`);
  if (!button) return;
  event.preventDefault();
  button.click();
});

// A second key before the next row is there was meant for that row, and would replace this one's judgement.
document.addEventListener("submit", (event) => {
  const { target } = event;
  if (!target.matches(".prefer")) return;
  if (judging === target.action) event.preventDefault();
  judging = target.action;
});
window.addEventListener("pageshow", () => {
  judging = "";
});

document.addEventListener("htmx:after:swap", showRow);
showRow();
