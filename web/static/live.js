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
  // Regions of a job's page that wait for their turn.
  let parts = {};
  let swapped = 0;

  const job = () => document.querySelector("[data-job]");
  const hello = (again) => channel.postMessage({ page, jobs: job() ? [job().dataset.job] : [], again });

  function say(sentence) {
    away = Boolean(sentence);
    const line = document.getElementById("silence");
    if (line.textContent !== sentence) line.textContent = sentence;
    line.hidden = !away;
    for (const beat of document.querySelectorAll(".beat")) {
      beat.classList.toggle("lost", away);
      beat.lastElementChild.textContent = away ? "reconnecting" : "live";
    }
  }

  function swap(fresh) {
    const regions = Object.entries(fresh).map(
      ([target, html]) => `<hx-partial hx-target="${target}" hx-swap="outerMorph">${html}</hx-partial>`,
    );
    if (!regions.length) return;
    htmx.swap({ text: regions.join(""), swap: "none swapEmpty:false", sourceElement: document.body, target: document.body });
  }

  // What someone writes into, or has opened, is not taken away.
  function isBusy(region) {
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
    const every = job()?.dataset.every ?? 0;
    if (now - swapped < 1000 * every) return;
    swapped = now;
    const fresh = parts;
    parts = {};
    swap(fresh);
  }

  function take(told) {
    if (told.job !== job()?.dataset.job) return;
    Object.assign(parts, told.parts);
    if (told.done) {
      // Nothing changes any more.
      job().remove();
      for (const form of document.querySelectorAll("form.refresh")) form.remove();
      hello(false);
    }
    look();
  }

  channel.onmessage = ({ data }) => {
    if (data.ask) hello(true);
    if (data.ask || data.page || (data.to && data.to !== page)) return;
    heard = Date.now();
    if (data.lost) {
      at = data.at ?? at;
      say(data.refusal || `Reconnecting.${at ? ` Figures are from ${at} UTC.` : ""}`);
    } else if (data.pulse) {
      at = data.pulse.at;
      marks = data.pulse.marks;
      say(data.pulse.silence);
      if (!document.hidden) swap(data.pulse.parts);
      look();
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
