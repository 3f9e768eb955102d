// What HTML and htmx cannot do: theme, keys, copying, toasts, opening rows.
"use strict";

const byData = (name) => document.querySelectorAll(`[data-${name}]`);

// -- theme: automatic, light, dark, and round again ---------------------------------------------------------------
const THEMES = ["auto", "light", "dark"];

function showTheme() {
  const now = document.documentElement.dataset.theme || "auto";
  for (const button of byData("theme-switch")) {
    button.hidden = false;
    button.title = `Theme: ${now}`;
    button.setAttribute("aria-label", `Theme: ${now}`);
  }
}

function nextTheme() {
  const root = document.documentElement;
  const next = THEMES[(THEMES.indexOf(root.dataset.theme || "auto") + 1) % THEMES.length];
  if (next === "auto") delete root.dataset.theme;
  else root.dataset.theme = next;
  localStorage.setItem("theme", next);
  showTheme();
}

// -- toasts: results of one's own action, six seconds -------------------------------------------------------------
function toast(text) {
  const note = document.createElement("div");
  note.className = "toast";
  note.textContent = text;
  document.getElementById("toasts").append(note);
  setTimeout(() => note.remove(), 6000);
}

function sentenceOf(text) {
  try {
    return JSON.parse(text).detail;
  } catch {
    return "";
  }
}

// A region that is reloaded by itself says nothing: the live connection tells whether a service is away.
const byItself = (event) => event.detail.ctx?.sourceElement?.matches("[data-watch]");

document.addEventListener("htmx:response:error", (event) => {
  const { response, text } = event.detail.ctx;
  if (!byItself(event) && response.status !== 422) toast(sentenceOf(text) || `The server answered ${response.status}. Try again.`);
});
document.addEventListener("htmx:error", (event) => {
  if (!byItself(event)) toast("The gateway does not answer. Try again in a moment.");
});

// -- copying --------------------------------------------------------------------------------------------------------
async function copy(button) {
  const source = button.dataset.copy && document.querySelector(button.dataset.copy);
  await navigator.clipboard.writeText(source ? source.innerText : location.href);
  toast("Copied.");
}

// -- items: a row opens under itself --------------------------------------------------------------------------------
function openRow(row) {
  const below = row.nextElementSibling;
  if (below && below.classList.contains("detail")) {
    below.remove();
    row.classList.remove("open");
    const address = new URL(location.href);
    address.searchParams.delete("open");
    history.replaceState(history.state, "", address);
    return;
  }
  // An opened table stays as it is: live updates look for this mark.
  row.closest("#items").removeAttribute("data-live");
  row.classList.add("open");
  row.querySelector("a").click();
}

// -- items: a choice made while an answer is on its way is added to what was asked, and takes nothing of it back -----
// A link or form of the card names the whole view as it was drawn, with its own change.
let coming = null;

document.addEventListener("htmx:config:request", (event) => {
  const { ctx } = event.detail;
  if (ctx.target?.id !== "items") return;
  const { view: drawn, page } = ctx.target.dataset;
  const [path, query] = ctx.request.action.split("?");
  const asked = new URLSearchParams([...new URLSearchParams(query), ...ctx.request.body]);
  const before = new URLSearchParams(drawn);
  const view = new URLSearchParams(coming?.view ?? drawn);
  for (const name of new Set([...asked.keys(), ...before.keys()])) {
    const value = asked.get(name) || "";
    if (value === (before.get(name) || "")) continue;
    if (value) view.set(name, value);
    else view.delete(name);
  }
  ctx.request.action = `${path}?${view}`;
  ctx.request.body = new FormData();
  const address = `${page}${view.size ? "?" : ""}${view}`;
  if (ctx.push || coming?.push) ctx.push = address;
  else if (ctx.replace) ctx.replace = address;
  coming = { ctx, view: String(view), push: Boolean(ctx.push) };
});

document.addEventListener("htmx:finally:request", (event) => {
  if (coming?.ctx === event.detail.ctx) coming = null;
});

const keyOf = (row) => row.id || row.querySelector(".pick input")?.value;
let atHand = "";

function moveTo(row) {
  if (!row) return;
  document.querySelector("tr.at")?.classList.remove("at");
  row.classList.add("at");
  atHand = keyOf(row);
  row.scrollIntoView({ block: "nearest" });
}

const steps = () => [...document.querySelectorAll("tr.item, tr:has(.pick input)")];

// A table that is read again has its row at hand again.
function keepRow() {
  if (atHand && !document.querySelector("tr.at")) steps().find((row) => keyOf(row) === atHand)?.classList.add("at");
}

function step(forward) {
  const rows = steps();
  const now = rows.findIndex((row) => row.classList.contains("at"));
  moveTo(rows[now < 0 ? 0 : now + (forward ? 1 : -1)]);
}

// From an opened item to the one before or after it.
function stepOpened(forward) {
  const row = [...document.querySelectorAll("tr.item.open")].at(-1);
  if (!row) return document.querySelector(`.steps [rel=${forward ? "next" : "prev"}]`)?.click();
  const rows = [...document.querySelectorAll("tr.item")];
  const next = rows[rows.indexOf(row) + (forward ? 1 : -1)];
  if (!next) return;
  openRow(row);
  moveTo(next);
  if (!next.classList.contains("open")) openRow(next);
}

// What a reader folded or unfolded stays so when a region is drawn again. Only extensions are asked about attributes.
htmx.registerExtension("folds", {
  htmx_before_morph_attr: (element, { attrName }) => element.tagName !== "DETAILS" || attrName !== "open",
});

// -- files of the form for experiments: the server has read them, and a text that came from one replaces what was typed
document.addEventListener("htmx:after:swap", (event) => {
  const form = event.detail.ctx?.sourceElement;
  if (form?.id !== "new-experiment") return;
  for (const field of form.querySelectorAll("[type=file]")) field.value = "";
  for (const field of form.querySelectorAll("[data-filled]")) field.value = field.defaultValue;
});

document.addEventListener("click", (event) => {
  const target = event.target;
  if (target.closest("[data-theme-switch]")) return nextTheme();
  const copying = target.closest("[data-copy]");
  if (copying) return void copy(copying);
  const row = target.closest("tr.item");
  if (!row || event.ctrlKey || event.metaKey || String(getSelection())) return;
  const link = target.closest("a");
  if (!link) openRow(row);
  else if (event.isTrusted && row.classList.contains("open")) {
    event.preventDefault();
    event.stopImmediatePropagation();
    openRow(row);
  } else if (event.isTrusted) {
    row.closest("#items").removeAttribute("data-live");
    row.classList.add("open");
  }
}, true);

document.addEventListener("focusin", (event) => {
  if (event.target.id === "find") event.target.closest("#items")?.removeAttribute("data-live");
});

document.addEventListener("change", (event) => {
  event.target.closest("[data-submit-on-change]")?.requestSubmit();
  showStart();
});

// -- models: a click anywhere in a row ticks it ---------------------------------------------------------------------
document.addEventListener("click", (event) => {
  const row = event.target.closest(".models tbody tr");
  if (row && !event.target.closest("input, label, a") && !String(getSelection())) row.querySelector("input")?.click();
});

// -- tasks: a category's box ticks all of its tasks; htmx hears the change that follows ----------------------------
document.addEventListener("change", (event) => {
  const within = event.target.dataset?.ticks && document.querySelector(event.target.dataset.ticks);
  if (!within) return;
  for (const box of within.querySelectorAll("input[name=task]")) box.checked = event.target.checked;
}, true);

// -- comparing: ticked rows stay ticked when their table is swapped; x ticks the row at hand ------------------------
const picked = new Set([...document.querySelectorAll(".pick :checked")].map((box) => box.value));

function showPicked() {
  for (const box of document.querySelectorAll(".pick input")) box.checked = picked.has(box.value);
  for (const form of byData("compares")) {
    const rows = [...form.elements].filter((one) => one.name === "jobs" && (one.checked || one.type === "hidden"));
    const able = (act) => rows.filter((one) => (one.dataset.can || "compare").split(" ").includes(act)).length;
    const button = form.querySelector("[data-compare]");
    button.textContent = rows.length ? `Compare ${rows.length}` : "Compare";
    button.disabled = rows.length < 2 || rows.length > 10 || able("compare") < rows.length;
    for (const act of form.querySelectorAll("[data-act]")) {
      const word = act.dataset.act[0].toUpperCase() + act.dataset.act.slice(1);
      const count = able(act.dataset.act);
      act.textContent = count ? `${word} ${count}` : word;
      act.disabled = !count;
    }
  }
}

document.addEventListener("change", (event) => {
  const { value, checked } = event.target;
  if (event.target.closest(".pick")) picked[checked ? "add" : "delete"](value);
  showPicked();
});

function tickRow() {
  document.querySelector("tr.at")?.querySelector(".pick input, .tick input")?.click();
}

document.addEventListener("focusin", (event) => {
  const row = event.target.closest("tr");
  if (row?.querySelector(".pick input, .tick input")) moveTo(row);
});

// -- keys -----------------------------------------------------------------------------------------------------------
document.addEventListener("keydown", (event) => {
  const command = event.ctrlKey || event.metaKey;
  if (command && event.key === "k") return openPalette(event);
  if (event.target.id === "palette-text") return chooseFound(event);
  if (document.querySelector("dialog[open]")) return;
  const judging = event.target.closest?.("form.judge");
  if (command && event.key === "Enter" && judging) return judging.querySelector("[value=fix]")?.click();
  if (command && event.key === "Enter") return document.getElementById("start")?.click();
  const typing = event.target.matches("input:not([type=checkbox]), select, textarea");
  if (event.key === "?" && !command && !event.altKey && !typing) return document.getElementById("shortcuts")?.showModal();
  if (event.key === "x" && !command && !event.altKey && !typing) return tickRow();
  if (command || event.altKey || event.target.matches("input, select, textarea, button, a, summary")) return;
  if (event.key === "/") return focusOn("find", event) || openPalette(event);
  if ("123".includes(event.key)) return judge(Number(event.key), event);
  if (event.key === "[") stepOpened(false);
  if (event.key === "]") stepOpened(true);
  if (event.key === "j") step(true);
  if (event.key === "k") step(false);
  if (event.key === "Enter") document.querySelector("tr.item.at") && openRow(document.querySelector("tr.item.at"));
});

// -- palette: what fits is drawn by the server; arrows choose, Enter opens -------------------------------------------
function openPalette(event) {
  const palette = document.getElementById("palette");
  if (!palette) return;
  event.preventDefault();
  for (const open of document.querySelectorAll("dialog[open]")) open.close();
  palette.showModal();
  const text = document.getElementById("palette-text");
  text.select();
  htmx.trigger(text.form, "opened");
}

function chooseFound(event) {
  const found = [...document.querySelectorAll("#found a")];
  const now = found.findIndex((one) => one.ariaSelected === "true");
  const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (move && found.length) {
    event.preventDefault();
    choose(found[(now + move + found.length) % found.length]);
  }
  // Results of an older text are not opened: the form is sent instead.
  if (event.key !== "Enter" || now < 0 || document.getElementById("found").dataset.asked !== event.target.value.trim()) return;
  event.preventDefault();
  found[now].click();
}

function choose(option) {
  for (const one of document.querySelectorAll("#found a")) one.ariaSelected = String(one === option);
  const text = document.getElementById("palette-text");
  if (option) text.setAttribute("aria-activedescendant", option.id);
  else text.removeAttribute("aria-activedescendant");
  option?.scrollIntoView({ block: "nearest" });
}

document.addEventListener("click", (event) => {
  if (event.target.closest("#jump, [data-palette]")) openPalette(event);
});
document.addEventListener("htmx:after:swap", () => {
  if (document.querySelector("#palette[open]") && !document.querySelector("#found [aria-selected=true]")) choose(document.querySelector("#found a"));
});

// Judges the opened row: golden and wrong at once, fix once its text is written.
function judge(number, event) {
  const opened = [...document.querySelectorAll("tr.item.open")];
  const row = opened.find((one) => one.classList.contains("at")) || opened.at(-1);
  const form = row ? row.nextElementSibling?.querySelector("form.judge") : document.querySelector(".alone form.judge");
  const button = form?.querySelector(["[value=golden]", "[value=fix]", "[value=wrong]"][number - 1]);
  if (!button) return;
  event.preventDefault();
  if (number === 2) form.querySelector("[name=corrected_answer]").focus();
  else button.click();
}

function focusOn(id, event) {
  const field = document.getElementById(id);
  if (!field || field.offsetParent === null) return false;
  event.preventDefault();
  field.focus();
  field.select();
  return true;
}

// -- after each swap, as at the start -------------------------------------------------------------------------------
// The counts go on while the rows stay: says how many came since the rows were read.
function showFresh() {
  const link = document.getElementById("fresh");
  const count = document.querySelector("#items nav [aria-current] [data-n]");
  if (!link || !count) return;
  const held = document.getElementById("more")
    ? Number(document.getElementById("items").dataset.counted)
    : document.querySelectorAll("#items tr.item").length;
  const fresh = Number(count.dataset.n) - held;
  link.hidden = fresh <= 0;
  link.textContent = `${fresh.toLocaleString("en")} new item${fresh === 1 ? "" : "s"}`;
}

// The server answers for an empty choice too; here the button says it first.
function showStart() {
  const start = document.querySelector("#run #start");
  if (!start) return;
  const idle = !document.querySelector("#run input[name=model]:checked");
  start.classList.toggle("idle", idle);
  start.disabled = idle;
}

function settle() {
  const named = document.querySelector("[data-title]");
  if (named) document.title = named.dataset.title;
  showTheme();
  showFresh();
  showStart();
  showPicked();
  keepRow();
  for (const button of byData("copy")) button.hidden = !navigator.clipboard;
  const rows = document.querySelectorAll("#items tr.item");
  if (rows.length > 100) document.getElementById("items").removeAttribute("data-live");
}

settle();
document.addEventListener("htmx:after:swap", settle);
document.addEventListener("htmx:finally:request", showStart);
