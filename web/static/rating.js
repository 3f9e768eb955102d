// Rating by keys: digits score the criterion at hand and go to the next one, Enter stores, s skips, n writes a note.
"use strict";

const folded = new Map();
const BURST_MS = 250;
let shown = null;
let unseen = -Infinity;

const deskNow = () => document.getElementById("desk");
const questions = () => [...document.querySelectorAll("#desk .question")];
const fieldOf = (question) => question?.querySelector(":checked") || question?.querySelector("input");
const isEmpty = (question) => !question.querySelector(":checked") && !question.querySelector("input:not([type=radio])")?.value;
const asked = () => document.activeElement?.closest("#desk .question") || questions().find(isEmpty);

function moveOn(way) {
  const all = questions();
  const now = all.indexOf(asked());
  const next = now < 0 && way < 0 ? all.length - 1 : Math.max(0, Math.min(all.length - 1, now + way));
  fieldOf(all[next])?.focus();
}

function give(key, event) {
  const question = asked();
  const option = question?.querySelector(`input[data-key="${key}"]`);
  if (!option) return;
  event.preventDefault();
  option.checked = true;
  const following = questions()[questions().indexOf(question) + 1];
  if (following) fieldOf(following).focus();
  else document.querySelector("#rating .primary").focus();
}

function clickOn(selector, event) {
  const one = document.querySelector(selector);
  if (!one) return;
  event.preventDefault();
  one.click();
}

document.addEventListener("keydown", (event) => {
  const { key, target } = event;
  const store = document.querySelector("#rating .primary");
  if (event.isComposing || document.querySelector("dialog[open]") || !store) return;
  const command = event.ctrlKey || event.metaKey;
  const types = target.matches("textarea, select, input:not([type=radio])");
  // While a rating is on its way, the next answer has not been seen. Keys that follow such a key at once were meant for
  // the same answer: a part of its scores would be wrong here.
  if (store.disabled || (event.timeStamp - unseen < BURST_MS && !types)) {
    if (/^([0-9]|Enter)$/.test(key)) {
      unseen = event.timeStamp;
      event.preventDefault();
    }
    return;
  }
  if (key === "Enter" && (command || target.matches("body, main, input"))) {
    // A second Enter came too late for the answer before, which was stored.
    if (event.repeat || (!command && questions().every(isEmpty))) return event.preventDefault();
    return clickOn("#rating .primary", event);
  }
  if (key === "Escape" && target.id === "note") return moveOn(0);
  if (command || event.altKey || types) return;
  if (/^[0-9]$/.test(key)) return give(key, event);
  if (key === "j" || key === "k") return moveOn(key === "j" ? 1 : -1);
  if (key === "s") return clickOn("[data-skip]", event);
  if (key === "u") return clickOn("[form=clear]", event);
  if (key === "[" && target.matches("input")) return clickOn(".steps [rel=prev]", event);
  if (key === "]" && target.matches("input")) return clickOn(".steps [rel=next]", event);
  if (key !== "n") return;
  event.preventDefault();
  document.getElementById("note").focus();
});

// What a reader folded or unfolded stays so with the next answer.
document.addEventListener("toggle", ({ target }) => {
  if (target.closest("#desk") && target.id) folded.set(target.id, target.open);
}, true);

function arrive() {
  if (!deskNow() || deskNow() === shown) return;
  const first = !shown;
  shown = deskNow();
  for (const [id, open] of folded) {
    const one = document.getElementById(id);
    if (one) one.open = open;
  }
  const wrong = document.querySelector("#desk .question.wrong");
  fieldOf(wrong || questions()[0])?.focus({ preventScroll: true });
  if (wrong) wrong.scrollIntoView({ block: "nearest" });
  else if (!first && shown.getBoundingClientRect().top < 48) shown.scrollIntoView();
  if (!first) htmx.trigger(document.getElementById("agreement"), "rated");
}

// A note that was resized has a style, which htmx copies as an attribute: the policy of pages refuses these.
document.addEventListener("htmx:before:swap", () => {
  const note = document.getElementById("note");
  // Chromium leaves an empty attribute unless it was asked for it first.
  if (note?.hasAttribute("style")) note.removeAttribute("style");
});

arrive();
document.addEventListener("htmx:after:swap", arrive);
