// Uploading rows: drop a file, see how it would be read, see it go. Without this script the form sends itself.
"use strict";

const form = document.getElementById("upload");
const field = document.getElementById("file");
const drop = document.getElementById("drop");
const send = document.getElementById("send");
const sent = document.getElementById("sent");
const preview = document.getElementById("preview");
const MOST_SHOWN = 600; // Characters of a cell.
const AT_ONCE = 50e6; // Larger files are previewed when the user asks.

function size(bytes) {
  let value = bytes;
  for (const unit of ["B", "KB", "MB"]) {
    if (value < 1000) return unit === "B" ? `${value} B` : `${value.toFixed(1)} ${unit}`;
    value /= 1000;
  }
  return `${value.toFixed(1)} GB`;
}

// -- choosing -------------------------------------------------------------------------------------------------------
function show() {
  // What was wrong with another file says nothing of this one.
  document.getElementById("refused").hidden = true;
  const file = field.files[0];
  document.getElementById("chosen").textContent = file ? file.name : "Choose a file";
  document.getElementById("chosen-note").textContent = file ? size(file.size) : "or drop it here";
  drop.classList.toggle("held", Boolean(file));
  offerColumns([]);
  offerSheets([]);
  askForLast(false);
  if (file && file.size <= AT_ONCE) return look();
  asking?.abort();
  preview.hidden = true;
  if (file) offerPreview(file);
}

// -- preview --------------------------------------------------------------------------------------------------------
let asking = null;

// What the server would make of the file with the options of the form.
async function look() {
  if (!field.files.length) return;
  asking?.abort();
  const mine = (asking = new AbortController());
  say("Reading the file…", "");
  try {
    const answer = await fetch(form.dataset.preview, { method: "POST", body: new FormData(form), signal: mine.signal });
    const found = await answer.json();
    if (mine.signal.aborted) return;
    if (answer.ok) tell(found);
    else refuse(found);
  } catch (error) {
    if (error.name !== "AbortError") say("The file could not be previewed. You can still upload it.", "");
  }
}

function offerPreview(file) {
  say(`The file has ${size(file.size)}. A preview reads all of it.`, "");
  choices([choice("Preview", look)]);
}

// A sentence and a note, and nothing else yet.
function say(sentence, note) {
  preview.hidden = false;
  preview.querySelector(".reading").textContent = sentence;
  preview.querySelector(".fit").textContent = note;
  for (const part of preview.querySelectorAll("table, .more, .take, .by-hand")) part.hidden = true;
  choices([]);
}

function tell(found) {
  document.getElementById("refused").hidden = true;
  const number = (count) => count.toLocaleString("en");
  const fit = `${number(found.rows_that_fit)} of ${number(found.rows)} row${found.rows === 1 ? "" : "s"} fit, ${number(found.rows_with_reference)} with a reference.`;
  say(found.why || `${found.reading}.`, found.why ? "" : fit);
  offerColumns(found.columns);
  offerSheets(found.sheets);
  askForLast(found.field === "last_assistant");
  const take = preview.querySelector(".take");
  take.hidden = Boolean(found.why) || found.bad_lines > 0;
  take.textContent = found.rows === 1 ? "Take this row" : `Take all ${number(found.rows)} rows`;
  if (found.field === "template") document.getElementById("template-part").open = true;
  preview.querySelector(".by-hand").hidden = !found.columns.length;
  const others = found.readings.filter((one) => found.why ? found.field === "format" : one.format !== found.format);
  choices(others.map((one) => choice(`Read as ${titleOf(one.format)}`, () => readAs(one.format), one.reading)));
  fill("#preview .first", found.first_rows.map((row) => [row.custom_id, spoken(row.messages), shown(row.reference)]));
  tellReasons(preview, found, "row");
}

// Each reason with the number of its lines in the whole file, and the first of them.
function tellReasons(part, { reasons = [], other_lines: others = 0 }, what) {
  const number = (count) => count.toLocaleString("en");
  const which = ({ count, lines }) => lines.map(number).join(", ") + (count > lines.length ? ", …" : "");
  fill(`#${part.id} .lines`, reasons.map((one) => [one.reason, number(one.count), which(one)]));
  const more = part.querySelector(".more");
  more.hidden = others <= 0;
  more.textContent = others === 1 ? `1 further ${what} has other reasons.` : `${number(others)} further ${what}s have other reasons.`;
}

function fill(table, rows) {
  const part = document.querySelector(table);
  part.hidden = !rows.length;
  part.querySelector("tbody").replaceChildren(
    ...rows.map((cells) => {
      const row = document.createElement("tr");
      for (const text of cells) row.insertCell().textContent = text.length > MOST_SHOWN ? `${text.slice(0, MOST_SHOWN)}…` : text;
      if (table.endsWith(".lines")) row.cells[1].className = "num";
      return row;
    }),
  );
}

const shown = (value) => (value === null ? "–" : typeof value === "string" ? value : JSON.stringify(value));
const spoken = (messages) => {
  const said = ({ role, content }) => `${role === "user" && messages.length === 1 ? "" : `${role}: `}${shown(content)}`;
  return messages.map(said).join("\n");
};
const titleOf = (format) => document.querySelector(`#format option[value="${CSS.escape(format)}"]`)?.textContent ?? format;

function choice(words, act, title = "") {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = words;
  button.title = title;
  button.className = "other";
  button.addEventListener("click", act);
  return button;
}

function choices(buttons) {
  for (const old of preview.querySelectorAll(".choices .other")) old.remove();
  preview.querySelector(".choices").append(...buttons);
}

function readAs(format) {
  document.getElementById("format").value = format;
  if (format !== "promptfoo") document.getElementById("template").value = "";
  look();
}

preview.querySelector(".by-hand").addEventListener("click", () => {
  document.getElementById("format").value = "";
  document.getElementById("template-part").open = true;
  document.getElementById("template").focus();
});

// The columns of the file: names for the reference, and buttons that insert them into the template.
function offerColumns(columns) {
  const options = columns.map((name) => {
    const option = document.createElement("option");
    option.value = name;
    return option;
  });
  document.getElementById("columns").replaceChildren(...options);
  const buttons = columns.slice(0, 30).map((name) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = name;
    button.addEventListener("click", () => insert(`{{${name}}}`));
    return button;
  });
  document.getElementById("columns-found").replaceChildren(...(columns.length ? ["Insert ", ...buttons] : []));
}

// The sheets of a workbook that has several. The chosen one stays while the file has it.
function offerSheets(sheets) {
  const field = document.getElementById("sheet");
  const chosen = field.value;
  const option = (name, words = name) => Object.assign(document.createElement("option"), { value: name, textContent: words });
  field.replaceChildren(option("", "The first sheet"), ...sheets.map((name) => option(name)));
  field.value = sheets.includes(chosen) ? chosen : "";
  document.getElementById("sheet-part").hidden = sheets.length < 2;
}

function insert(text) {
  const template = document.getElementById("template");
  template.setRangeText(text, template.selectionStart, template.selectionEnd, "end");
  template.focus();
  template.dispatchEvent(new Event("change", { bubbles: true }));
}

// Rows that end with the assistant's words need a choice.
function askForLast(asked) {
  const last = document.getElementById("last_assistant");
  last.required = asked;
  document.getElementById("last").classList.toggle("wrong", asked && !last.value);
  document.getElementById("last-note").textContent = asked && !last.value ? "Rows of this file have one. Choose." : "";
}

form.addEventListener("change", (event) => {
  if (event.target !== field && field.files.length && field.files[0].size <= AT_ONCE) look();
});
field.addEventListener("change", show);
for (const name of ["dragenter", "dragover"]) {
  drop.addEventListener(name, (event) => {
    event.preventDefault();
    drop.classList.add("over");
  });
}
for (const name of ["dragleave", "drop"]) drop.addEventListener(name, () => drop.classList.remove("over"));
drop.addEventListener("drop", (event) => {
  event.preventDefault();
  if (!event.dataTransfer.files.length) return;
  field.files = event.dataTransfer.files;
  show();
});

// -- what is wrong --------------------------------------------------------------------------------------------------
function refuse(answer) {
  // A preview that is still on its way would show the same lines again.
  asking?.abort();
  preview.hidden = true;
  const part = document.getElementById("refused");
  part.querySelector(".what").textContent = answer.detail;
  tellReasons(part, answer, "line");
  part.hidden = false;
  part.scrollIntoView({ block: "nearest" });
}

// -- sending --------------------------------------------------------------------------------------------------------
function progress(done, total) {
  sent.hidden = false;
  sent.querySelector("progress").value = total ? done / total : 0;
  const words = done < total ? `${size(done)} of ${size(total)}` : "Sent. The rows are being checked…";
  document.getElementById("sent-note").textContent = words;
}

function finish() {
  sent.hidden = true;
  send.disabled = false;
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  asking?.abort();
  document.getElementById("refused").hidden = true;
  send.disabled = true;
  const request = new XMLHttpRequest();
  request.open("POST", form.dataset.upload);
  request.responseType = "json";
  request.upload.addEventListener("progress", ({ loaded, total }) => progress(loaded, total));
  request.addEventListener("load", () => {
    const answer = request.response;
    if (request.status === 200) return location.assign(`/datasets/${answer.dataset_id}`);
    finish();
    refuse(answer?.detail ? answer : { detail: `The server answered ${request.status}.` });
  });
  request.addEventListener("error", () => {
    finish();
    refuse({ detail: "The connection broke before the upload was complete." });
  });
  // Fields in the order of the page: the file is the last of them, as the server asks.
  request.send(new FormData(form));
});

addEventListener("pageshow", finish);
