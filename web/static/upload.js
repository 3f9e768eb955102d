// Uploading rows: drop a file, see it go, read what is wrong with it. Without this script the form sends itself.
"use strict";

const form = document.getElementById("upload");
const field = document.getElementById("file");
const drop = document.getElementById("drop");
const send = document.getElementById("send");
const sent = document.getElementById("sent");
const PEEK = 64 * 1024;

function size(bytes) {
  let value = bytes;
  for (const unit of ["B", "KB", "MB"]) {
    if (value < 1000) return unit === "B" ? `${value} B` : `${value.toFixed(1)} ${unit}`;
    value /= 1000;
  }
  return `${value.toFixed(1)} GB`;
}

// -- choosing -------------------------------------------------------------------------------------------------------
// Columns of the file's first record; none for lines that hold prompts themselves, and for what is compressed.
async function columnsOf(file) {
  if (/\.gz$/i.test(file.name)) return [];
  const head = (await file.slice(0, PEEK).text()).replace(/^\uFEFF/, "");
  const line = head.split(/\r?\n/, 1)[0];
  if (/\.csv$/i.test(file.name)) return line.split(",").map((name) => name.trim().replace(/^"|"$/g, ""));
  try {
    const names = Object.keys(JSON.parse(line));
    return names.some((name) => ["prompt", "messages", "body"].includes(name)) ? [] : names;
  } catch {
    return [];
  }
}

// Whether the file's first record ends with the assistant's words, which the form then asks about.
async function endsWithAssistant(file) {
  if (/\.(gz|csv)$/i.test(file.name)) return false;
  const line = (await file.slice(0, PEEK).text()).replace(/^\uFEFF/, "").trimStart().split(/\r?\n/, 1)[0];
  try {
    const record = JSON.parse(line);
    return (record.body?.messages || record.messages || []).at(-1)?.role === "assistant";
  } catch {
    return false;
  }
}

async function askForLast(file) {
  const has = Boolean(file) && (await endsWithAssistant(file));
  document.getElementById("last_assistant").required = has;
  document.getElementById("last").classList.toggle("wrong", has && !document.getElementById("last_assistant").value);
  document.getElementById("last-note").textContent = has ? "Rows of this file have one. Choose." : "";
}

async function show() {
  // What was wrong with another file says nothing of this one.
  document.getElementById("refused").hidden = true;
  const file = field.files[0];
  document.getElementById("chosen").textContent = file ? file.name : "Choose a file";
  document.getElementById("chosen-note").textContent = file ? size(file.size) : "or drop it here";
  drop.classList.toggle("held", Boolean(file));
  await askForLast(file);
  const columns = file ? await columnsOf(file) : [];
  const options = columns.map((name) => {
    const option = document.createElement("option");
    option.value = name;
    return option;
  });
  document.getElementById("columns").replaceChildren(...options);
  const found = columns.length ? ` Columns here: ${columns.slice(0, 30).join(", ")}.` : "";
  document.getElementById("columns-found").textContent = found;
  if (columns.length) document.getElementById("template-part").open = true;
}

field.addEventListener("change", show);
document.getElementById("last_assistant").addEventListener("change", () => askForLast(field.files[0]));
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
  const part = document.getElementById("refused");
  const lines = answer.lines || [];
  part.querySelector(".what").textContent = answer.detail;
  part.querySelector("tbody").replaceChildren(...lines.map(lineRow));
  part.querySelector("table").hidden = !lines.length;
  const further = (answer.bad_lines || 0) - lines.length;
  const more = part.querySelector(".more");
  more.hidden = further <= 0;
  more.textContent = `${further.toLocaleString("en")} further line${further === 1 ? "" : "s"} as well.`;
  part.hidden = false;
  part.scrollIntoView({ block: "nearest" });
}

function lineRow({ line, reason }) {
  const row = document.createElement("tr");
  const number = row.insertCell();
  number.className = "num";
  number.textContent = line.toLocaleString("en");
  row.insertCell().textContent = reason;
  return row;
}

// -- sending --------------------------------------------------------------------------------------------------------
function say(done, total) {
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
  document.getElementById("refused").hidden = true;
  send.disabled = true;
  const request = new XMLHttpRequest();
  request.open("POST", form.dataset.upload);
  request.responseType = "json";
  request.upload.addEventListener("progress", ({ loaded, total }) => say(loaded, total));
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
