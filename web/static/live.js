// The page's side of the live connection: regions that change by themselves, and what tells that a service is away.
"use strict";

(() => {
  const { stream, user, marks: drawn } = document.currentScript.dataset;
  // Another user, and another version, have a stream of their own.
  const name = `touchstone ${user} ${stream}`;
  const page = `${Date.now()} ${Math.random()}`;
  const channel = new BroadcastChannel(name);
  let marks = {};
  let away = false;
  let heard = Date.now();
  let at = "";
  // Per region: the mark with which it was last loaded, and when.
  const loaded = new Map();
  // Regions that wait for their turn, and what was swapped last, by their targets.
  let parts = {};
  const shown = {};
  // Many pages may be in sight: each rests after a swap, for longer the longer that took.
  const REST_MS = 1000;
  const UNFOCUSED_MS = 3000;
  const MOST_REST_MS = 3000;
  const REST_FACTOR = 20;
  const SETTLED_MS = 3000;
  let swapped = 0;
  let took = 0;
  let turn = 0;
  // It has just come into sight, and what it asked for has not come yet.
  let urgent = true;

  const job = () => document.querySelector("[data-job]");
  const hello = (again) => channel.postMessage({ page, jobs: job() ? [job().dataset.job] : [], again });

  function say(sentence) {
    away = Boolean(sentence);
    const line = document.getElementById("silence");
    // A page with figures of a copy says itself from when they are.
    if (!line.dataset.asOf) {
      if (line.textContent !== sentence) line.textContent = sentence;
      line.hidden = !away;
    }
    for (const beat of document.querySelectorAll(".beat")) {
      beat.classList.toggle("lost", away);
      beat.lastElementChild.textContent = away ? "reconnecting" : "live";
    }
  }

  // Such a page is drawn again when the services answer. What someone writes is not taken away. What is told at first
  // may be older than the page.
  function renew() {
    const line = document.getElementById("silence");
    if (!line.dataset.asOf || performance.now() < SETTLED_MS) return;
    const field = document.activeElement;
    if (!field?.matches("input:not([type=checkbox]), textarea, select")) return location.reload();
    line.textContent = `The results service answers again. Figures are from ${line.dataset.asOf} UTC: reload the page.`;
  }

  function keep(fresh) {
    for (const [target, html] of Object.entries(fresh)) {
      if (shown[target] === html) delete parts[target];
      else parts[target] = html;
    }
  }

  function swap() {
    const regions = Object.entries(parts).map(
      ([target, html]) => `<hx-partial hx-target="${target}" hx-swap="outerMorph">${html}</hx-partial>`,
    );
    if (!regions.length) return;
    Object.assign(shown, parts);
    parts = {};
    swapped = Date.now();
    htmx.swap({ text: regions.join(""), swap: "none swapEmpty:false", sourceElement: document.body, target: document.body });
    // With the layout that follows.
    requestAnimationFrame(() => setTimeout(() => (took = Date.now() - swapped)));
  }

  const rest = () => Math.max(document.hasFocus() ? REST_MS : UNFOCUSED_MS, Math.min(REST_FACTOR * took, MOST_REST_MS));

  // What someone writes into, or has opened, is not taken away. What is on its way may be older than what is told now.
  function isBusy(region) {
    if (region.matches(".htmx-request")) return true;
    const field = region.contains(document.activeElement) && document.activeElement;
    return (field && field.matches("input:not([type=checkbox]), textarea, select")) || region.querySelector(":popover-open");
  }

  function look() {
    if (document.hidden) return;
    const now = Date.now();
    for (const region of away ? [] : document.querySelectorAll("[data-watch]")) {
      const { watch, every } = region.dataset;
      const known = loaded.get(region.id) ?? { mark: JSON.parse(drawn)[watch], at: 0 };
      if (marks[watch] === known.mark || marks[watch] === undefined) continue;
      if (now - known.at < 1000 * every || isBusy(region)) continue;
      loaded.set(region.id, { mark: marks[watch], at: now });
      htmx.trigger(region, "live");
    }
    const left = swapped + Math.max(rest(), 1000 * (job()?.dataset.every ?? 0)) - now;
    clearTimeout(turn);
    if (urgent || left <= 0) swap();
    else if (Object.keys(parts).length) turn = setTimeout(look, left);
  }

  function take(told) {
    if (told.job !== job()?.dataset.job) return;
    keep(told.parts);
    if (told.done) {
      // Nothing changes any more.
      job().remove();
      for (const form of document.querySelectorAll("form.refresh")) form.remove();
      hello(false);
    }
    look();
    urgent = false;
  }

  channel.onmessage = ({ data }) => {
    if (data.ask) hello(true);
    if (data.ask || data.page || (data.to && data.to !== page)) return;
    if (document.hidden) {
      // Nothing is drawn out of sight. What came is at hand when the page is shown, which then asks for the rest.
      if (data.pulse) {
        marks = data.pulse.marks;
        keep(data.pulse.parts);
      } else if (data.job && data.job === job()?.dataset.job) keep(data.parts);
      return;
    }
    heard = Date.now();
    if (data.lost) {
      at = data.at ?? at;
      say(data.refusal || `Reconnecting.${at ? ` Figures are from ${at} UTC.` : ""}`);
    } else if (data.pulse) {
      at = data.pulse.at;
      marks = data.pulse.marks;
      say(data.pulse.silence);
      if (data.pulse.answering) renew();
      keep(data.pulse.parts);
      look();
      if (!job()) urgent = false;
    } else take(data);
  };

  function start() {
    if (window.SharedWorker) return void new SharedWorker(stream, { name });
    const lead = () => {
      const script = document.createElement("script");
      script.src = stream;
      script.onload = () => new LiveStream(name);
      document.head.append(script);
    };
    // One of the pages leads until it is closed; browsers that cannot agree on one have a stream per page.
    if (navigator.locks) navigator.locks.request(name, () => new Promise(lead));
    else lead();
  }

  // A region that could not be loaded is asked for again.
  const failed = (event) => loaded.has(event.target.id) && loaded.set(event.target.id, { mark: null, at: Date.now() });
  document.addEventListener("htmx:response:error", failed);
  document.addEventListener("htmx:error", failed);

  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return;
    heard = Date.now();
    urgent = true;
    look();
    hello(true);
  });
  addEventListener("pagehide", () => channel.postMessage({ page, bye: true }));
  addEventListener("pageshow", (event) => event.persisted && hello(true));
  setInterval(() => hello(false), 20_000);
  // A worker that the browser ended is started again.
  setInterval(() => {
    if (document.hidden || Date.now() - heard < 5000) return;
    say(`Reconnecting.${at ? ` Figures are from ${at} UTC.` : ""}`);
    heard = Date.now();
    if (window.SharedWorker) start();
    hello(true);
  }, 1000);

  start();
  hello(true);
})();
